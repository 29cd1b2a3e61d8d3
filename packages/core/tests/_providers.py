"""Providers that behave in one way each."""

import asyncio
from contextlib import suppress

DESCRIPTION = {"protocol_version": 1, "key": "stand-in", "label": "A stand-in"}
RESULT = {"id": "1", "content": "Two people approve a release."}


class Provider:
    """Answers with what it is given; notes what it was asked."""

    def __init__(self, response=(RESULT,), **description):
        self.response = response
        self.description = {**DESCRIPTION, **description}
        self.calls = []

    def describe(self):
        return self.description

    async def retrieve(self, request, context):
        self.calls.append((request, context))
        return self.response


class Raising(Provider):
    """Fails with the next of its exceptions, then with the last again; ``None`` stands for an answer."""

    def __init__(self, *errors):
        super().__init__()
        self.errors = list(errors)

    async def retrieve(self, request, context):
        self.calls.append((request, context))
        error = self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]
        if error is not None:
            raise error
        return self.response


class Patient(Provider):
    """Waits until it is released; says how it ended. A deaf one does not listen to cancellation."""

    def __init__(self, *, deaf=False, error=None):
        super().__init__()
        self.deaf = deaf
        self.error = error
        self.started = asyncio.Event()
        self.released = asyncio.Event()
        self.running = 0
        self.ended = []

    async def retrieve(self, request, context):
        self.calls.append((request, context))
        self.running += 1
        self.started.set()
        try:
            while not self.released.is_set():
                with suppress(*[asyncio.CancelledError] * self.deaf):
                    await self.released.wait()
            if self.error is not None:
                raise self.error
        except BaseException as error:
            self.ended.append(type(error))
            raise
        else:
            self.ended.append("answered")
            return self.response
        finally:
            self.running -= 1


async def until(condition):
    """Let others run until the condition holds; the caller's test is bounded in time."""
    while not condition():  # noqa: ASYNC110 - what it waits for may happen in a thread
        await asyncio.sleep(0.001)
