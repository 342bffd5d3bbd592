"""A slash command on a service of your own. `tiny-harness hooks serve deploys:app` in this folder serves it."""

from tiny_harness import CommandContext, CommandFailed, CommandResult, ExecutorApp

app = ExecutorApp("deploys")


@app.command("deploy", argument_hint="<env>", description="Deploy the current build")
async def deploy(context: CommandContext) -> CommandResult:
    if context.arguments not in ("staging", "production"):
        raise CommandFailed("There is no such environment: /deploy staging|production")
    return CommandResult(reply=f"Deployed to {context.arguments}.", data={"env": context.arguments})
