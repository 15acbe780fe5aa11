"""Tests of the adapters on stand-ins for the objects of the frameworks."""

import asyncio
import json
import sys
import types
import unittest
from types import SimpleNamespace

from nod_adapters import adk_before_tool, langchain_tool_call, openai_agents_tool, pydantic_ai_tool
from nod_client import NodError, Result

ALLOW = Result(True, "id", "allowed", "", "Ann", False, {"order": "A-1"})
EDIT = Result(True, "id", "allowed", "", "Ann", True, {"order": "A-2"})
DENY = Result(False, "id", "denied", "Denied by Ann: ask sales", "Ann")


class FakeNod:
    def __init__(self, end):
        self.end, self.asked = end, []

    def ask(self, call):
        self.asked.append((call.tool_name, dict(call.input), call.tool_call_id))
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


def pydantic_ai(nod, ran):
    async def refund(ctx, order):
        ran.append(order)
        return "refunded"

    return asyncio.run(pydantic_ai_tool(nod, refund)(SimpleNamespace(tool_call_id="call-1"), order="A-1"))


def langchain(nod, ran):
    class Request:
        def __init__(self, tool_call):
            self.tool_call = tool_call

        def override(self, tool_call):
            return Request(tool_call)

    def handler(request):
        ran.append(request.tool_call["args"]["order"])
        return "refunded"

    messages = types.ModuleType("langchain_core.messages")
    messages.ToolMessage = lambda content, name, tool_call_id, status: content
    sys.modules["langchain_core"], sys.modules["langchain_core.messages"] = types.ModuleType("langchain_core"), messages
    return langchain_tool_call(nod)(Request({"name": "refund", "args": {"order": "A-1"}, "id": "call-1"}), handler)


def openai_agents(nod, ran):
    async def invoke(context, arguments):
        ran.append(json.loads(arguments)["order"])
        return "refunded"

    tool = SimpleNamespace(name="refund", on_invoke_tool=invoke)
    guarded = openai_agents_tool(nod, tool)
    assert tool.on_invoke_tool is invoke, "the original tool stays as it is"
    return asyncio.run(guarded.on_invoke_tool(SimpleNamespace(tool_call_id="call-1"), '{"order": "A-1"}'))


def adk(nod, ran):
    args = {"order": "A-1"}
    said = asyncio.run(adk_before_tool(nod)(tool=SimpleNamespace(name="refund"), args=args, tool_context=SimpleNamespace(function_call_id="call-1")))
    if said is None:
        ran.append(args["order"])
        return "refunded"
    return said["error"]


class Adapters(unittest.TestCase):
    def test_every_adapter(self):
        for adapter in (pydantic_ai, langchain, openai_agents, adk):
            for end, said, runs in ((ALLOW, "refunded", ["A-1"]), (EDIT, "refunded", ["A-2"]), (DENY, DENY.message, [])):
                with self.subTest(adapter=adapter.__name__, end=end.outcome, edited=end.edited):
                    nod, ran = FakeNod(end), []
                    self.assertEqual(adapter(nod, ran), said)
                    self.assertEqual(ran, runs)
                    self.assertEqual(nod.asked, [("refund", {"order": "A-1"}, "call-1")])

    def test_an_error_runs_nothing(self):
        for adapter in (pydantic_ai, langchain, openai_agents, adk):
            with self.subTest(adapter=adapter.__name__):
                ran = []
                with self.assertRaises(NodError):
                    adapter(FakeNod(NodError("UNREACHABLE", "no nod")), ran)
                self.assertEqual(ran, [])

    def test_the_signature_stays(self):
        """Pydantic AI makes the tool's schema from the signature."""
        import inspect

        def refund(ctx, order: str, amount: int = 1):
            """Refunds an order."""

        guarded = pydantic_ai_tool(FakeNod(ALLOW), refund)
        self.assertEqual(inspect.signature(guarded), inspect.signature(refund))
        self.assertEqual(guarded.__doc__, "Refunds an order.")


if __name__ == "__main__":
    unittest.main()
