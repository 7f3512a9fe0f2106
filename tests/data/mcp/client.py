"""Drives `harness mcp` with the Python SDK, as the plan on standard input says, and prints what came of it as JSON.

Works with both majors of the SDK: 1 speaks the revisions with `initialize`, 2 also 2026-07-28.
"""

import asyncio
import json
import sys
from datetime import timedelta

import mcp
from mcp.client.stdio import StdioServerParameters

plan = json.load(sys.stdin)
MAJOR = 2 if hasattr(mcp, "Client") else 1
if MAJOR == 2:
    import mcp_types as types
else:
    from mcp import types

roots = plan.get("roots")
elicited = []


async def on_elicit(context, params):
    form = params.model_dump(mode="json", by_alias=True, exclude_none=True)
    elicited.append({"message": form["message"], "schema": form["requestedSchema"]})
    answer = plan["elicit"]
    if isinstance(answer, list):
        answer = answer[min(len(elicited), len(answer)) - 1]
    if answer == "silence":
        await asyncio.sleep(600)
    return types.ElicitResult(**answer)


async def on_roots(context):
    return types.ListRootsResult(roots=[types.Root.model_construct(uri=uri) for uri in roots])


async def call(session, step):
    seen = []

    async def on_progress(progress, total, message):
        seen.append([progress, message])

    options = {"progress_callback": on_progress} if step.get("progress") else {}
    if "read_timeout" in step:
        seconds = step["read_timeout"]
        options["read_timeout_seconds"] = seconds if MAJOR == 2 else timedelta(seconds=seconds)
    try:
        result = await session.call_tool(step["call"], step.get("arguments"), **options)
    except Exception as error:  # what the SDK raises is part of the result
        return {"raised": type(error).__name__, "text": str(error), "progress": seen}
    result = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {
        "error": result.get("isError", False),
        "text": "".join(part["text"] for part in result["content"]),
        "structured": result.get("structuredContent"),
        "progress": seen,
    }


async def cancelled(session, step):
    """A call that the client gives up after some seconds."""
    if MAJOR == 1:
        # This SDK sends no cancellation by itself.
        number = session._request_id
        task = asyncio.create_task(call(session, step))
        await asyncio.sleep(step["cancel_after"])
        gone = types.CancelledNotification(
            method="notifications/cancelled",
            params=types.CancelledNotificationParams(requestId=number, reason="test"),
        )
        await session.send_notification(types.ClientNotification(gone))
        task.cancel()
    else:
        import anyio

        with anyio.move_on_after(step["cancel_after"]):
            await session.call_tool(step["call"], step.get("arguments"))
    return {"cancelled": True}


async def perform(session, step):
    global roots
    if "list" in step:
        listed = await session.list_tools()
        return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in listed.tools]
    if "parallel" in step:
        return await asyncio.gather(*(call(session, one) for one in step["parallel"]))
    if "sleep" in step:
        return await asyncio.sleep(step["sleep"])
    if "roots" in step:
        roots = step["roots"]
        return await session.send_roots_list_changed()
    if "cancel_after" in step:
        return await cancelled(session, step)
    return await call(session, step)


async def main():
    server = StdioServerParameters(command=plan["command"], args=plan["args"], cwd=plan["cwd"], env=plan["env"])
    callbacks = {}
    if plan.get("elicit") is not None:
        callbacks["elicitation_callback"] = on_elicit
    if roots is not None:
        callbacks["list_roots_callback"] = on_roots
    done = {"results": []}

    async def steps(session):
        for step in plan["steps"]:
            done["results"].append(await perform(session, step))

    if MAJOR == 2:
        async with mcp.Client(server, mode=plan["mode"], **callbacks) as client:
            done["protocol"] = client.protocol_version
            done["instructions"] = client.instructions
            await steps(client)
    else:
        from mcp.client.stdio import stdio_client

        async with stdio_client(server) as (read, write):
            async with mcp.ClientSession(read, write, **callbacks) as session:
                begun = await session.initialize()
                done["protocol"] = begun.protocolVersion
                done["instructions"] = begun.instructions
                await steps(session)
    done["elicited"] = elicited
    print(json.dumps(done))


asyncio.run(main())
