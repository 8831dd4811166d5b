"""DeleteGroups: a group without members goes, with everything it committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.broker.groups.protocols import coordinator_order
from headwater.broker.registry import handles
from headwater.broker.waiting import Later
from headwater.wire.errors import ErrorCode, KafkaError
from headwater.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from headwater.broker.registry import Context
    from headwater.broker.state import Broker


def refused(request: DeleteGroupsRequest, error: KafkaError) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=name, error_code=error.code) for name in request.groups_names]
    )


@handles(DeleteGroupsRequest, versions=(0, 2), error=refused)
def delete_groups(
    broker: Broker, request: DeleteGroupsRequest, _context: Context
) -> Later[DeleteGroupsResponse]:
    promise: Later[DeleteGroupsResponse] = Later()
    names = coordinator_order(dict.fromkeys(request.groups_names), broker.groups.topic.count)
    response = DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=name, error_code=_delete(broker, name)) for name in names]
    )

    def failed() -> None:
        for result in response.results:
            result.error_code = result.error_code or ErrorCode.NOT_COORDINATOR
        promise.set(response)

    broker.groups.durable.then(lambda: promise.set(response), failed)
    return promise


def _delete(broker: Broker, name: str) -> ErrorCode:
    try:
        group = broker.groups.get(name)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        group.check_deletable()
    except KafkaError as error:
        return error.code
    if broker.log.fenced is not None:
        return ErrorCode.NOT_COORDINATOR
    broker.groups.delete(group)
    return ErrorCode.NONE
