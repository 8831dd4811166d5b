"""ListGroups: all groups, or those in some states (v4) or of some types (v5; all of ours are classic)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.registry import handles
from headwater.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker

CLASSIC = "classic"


@handles(ListGroupsRequest, versions=(0, 5))
def list_groups(broker: Broker, request: ListGroupsRequest, _context: Context) -> ListGroupsResponse:
    states = {state.lower() for state in request.states_filter}
    types = {type_name.lower() for type_name in request.types_filter}
    if types and CLASSIC not in types:
        return ListGroupsResponse()
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=CLASSIC,
            )
            for group in broker.groups.by_id.values()
            if not states or group.state.value.lower() in states
        ]
    )
