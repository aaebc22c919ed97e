"""A push service and a device."""

from collections.abc import AsyncGenerator

import pytest

from towline_server.testing import FakePushService
from towline_server.testing.browser import Browser


@pytest.fixture
async def service() -> AsyncGenerator[FakePushService]:
    async with FakePushService() as service:
        yield service


@pytest.fixture
def phone(service: FakePushService) -> Browser:
    return Browser(service)
