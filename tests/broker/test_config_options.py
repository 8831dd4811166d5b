"""Settings of Kafka's that are options of ours."""

from __future__ import annotations

import pytest

from headwater.broker.config import OPTIONS, BrokerSettings
from headwater.core.errors import UsageError


@pytest.mark.parametrize("name", OPTIONS)
def test_what_is_an_option_here_is_refused_as_a_setting_with_the_option_to_type(name: str) -> None:
    with pytest.raises(UsageError, match=OPTIONS[name].split()[0]):
        BrokerSettings({name: "*"})
