"""Adapters for agent frameworks. They import no framework, but for the message class of LangChain when a call
is refused.

Every adapter asks before the tool runs, and runs it with the allowed input, which an approver may have edited.
After a refusal the tool does not run, and the model reads nod's words as the tool's result. Every error, such as
an unreachable nod, is raised, and the tool does not run either.

They follow the documents of the frameworks, and were not run with the packages themselves.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any

from nod_client import Call, Nod, Result

__all__ = ["adk_before_tool", "langchain_tool_call", "openai_agents_tool", "pydantic_ai_tool"]


def pydantic_ai_tool(nod: Nod, tool: Callable[..., Any], *, name: str | None = None, **fields: Any) -> Callable[..., Awaitable[Any]]:
    """Returns a tool for Pydantic AI's ``tools=[…]`` or ``@agent.tool``. The first parameter of ``tool`` is the
    RunContext, and its other arguments must be JSON values."""
    signature = inspect.signature(tool)

    @functools.wraps(tool)
    async def asks(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        (first, context), *rest = bound.arguments.items()
        result = await _ask(nod, name or tool.__name__, dict(rest), context.tool_call_id, fields)
        input = _runs_with(result)
        if input is None:
            return result.message
        done = tool(**{first: context, **input})
        return await done if inspect.isawaitable(done) else done

    return asks


def langchain_tool_call(nod: Nod, **fields: Any) -> Callable[[Any, Callable[[Any], Any]], Any]:
    """Returns a function for LangChain's ``@wrap_tool_call`` and for ``ToolNode(…, wrap_tool_call=…)`` of
    LangGraph."""

    def asks(request: Any, handler: Callable[[Any], Any]) -> Any:
        call = request.tool_call
        result = nod.ask(Call(tool_name=call["name"], input=call["args"], tool_call_id=call["id"], **fields))
        input = _runs_with(result)
        if input is None:
            from langchain_core.messages import ToolMessage

            return ToolMessage(content=result.message, name=call["name"], tool_call_id=call["id"], status="error")
        return handler(request.override(tool_call={**call, "args": input}))

    return asks


def openai_agents_tool(nod: Nod, tool: Any, **fields: Any) -> Any:
    """Returns a copy of a FunctionTool of the OpenAI Agents SDK that asks first."""
    guarded = copy.copy(tool)

    async def asks(context: Any, arguments: str) -> Any:
        result = await _ask(nod, tool.name, json.loads(arguments or "{}"), context.tool_call_id, fields)
        input = _runs_with(result)
        if input is None:
            return result.message
        return await tool.on_invoke_tool(context, json.dumps(input))

    guarded.on_invoke_tool = asks
    return guarded


def adk_before_tool(nod: Nod, **fields: Any) -> Callable[..., Awaitable[dict[str, Any] | None]]:
    """Returns a ``before_tool_callback`` for an agent of Google's ADK. ADK runs the tool with the arguments that
    the callback leaves in ``args``, unless the callback returns a result."""

    async def before_tool(tool: Any, args: dict[str, Any], tool_context: Any) -> dict[str, Any] | None:
        result = await _ask(nod, tool.name, args, tool_context.function_call_id, fields)
        input = _runs_with(result)
        if input is None:
            return {"error": result.message}
        args.clear()
        args.update(input)
        return None

    return before_tool


async def _ask(nod: Nod, name: str, input: dict[str, Any], id: str | None, fields: dict[str, Any]) -> Result:
    """Asks in a thread, so that the event loop goes on meanwhile."""
    return await asyncio.to_thread(nod.ask, Call(tool_name=name, input=input, tool_call_id=id, **fields))


def _runs_with(result: Result) -> dict[str, Any] | None:
    """Returns the input with which the tool may run, or None if it must not run."""
    return result.input if result.allowed else None
