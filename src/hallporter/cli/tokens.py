"""`hallporter tokens`: who may speak to the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hallporter.cli import screen
from hallporter.cli.shell import AsJson, ask
from hallporter.domain.errors import InvalidRequestError
from hallporter.domain.token import Role, parse_lifetime

if TYPE_CHECKING:
    from hallporter.cli.host import Client

app = typer.Typer(help="Bearer tokens for the HTTP API.", no_args_is_help=True)


def _check_role(text: str) -> str:
    if text not in set(Role):
        raise typer.BadParameter(f"{text!r} is no role: use one of {', '.join(Role)}")
    return text


def _check_lifetime(text: str | None) -> str | None:
    try:
        if text is not None:
            parse_lifetime(text)
    except InvalidRequestError as error:
        raise typer.BadParameter(error.message) from error
    return text


@app.command()
def create(
    context: typer.Context,
    *,
    role: Annotated[
        str,
        typer.Option(
            help="consumer_app, consumer_whatsapp or studio_operator.",
            metavar="ROLE",
            callback=_check_role,
            show_default=False,
        ),
    ],
    subject: Annotated[
        str, typer.Option(help="Who will use it.", metavar="NAME", show_default=False)
    ],
    chat: Annotated[
        str | None, typer.Option(help="The one chat that it opens.", metavar="CHAT_ID")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            help="After how long: 12h, 30d, 8w.", metavar="SPAN", callback=_check_lifetime
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a token; its secret is printed once and stored hashed."""
    body = {"role": role, "subject": subject, "chat": chat, "expires": expires}

    async def work(client: Client) -> Any:  # noqa: ANN401  JSON
        return (await client.post("/api/tokens", body))["data"]

    made = ask(context, work)
    if as_json:
        keys = ("id", "token", "role", "subject", "expires")
        screen.show_json({key: made[key] for key in keys})
        return
    until = f" until {screen.moment(made['expires'])}" if made["expires"] else ""
    screen.note(f"Token {made['id']} for {subject} ({role}){until}. It is shown this once:")
    screen.show(made["token"])


@app.command("list")
def show_all(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the tokens, also revoked ones."""

    async def work(client: Client) -> Any:  # noqa: ANN401  JSON
        return (await client.get("/api/tokens"))["data"]

    tokens = ask(context, work)
    if as_json:
        screen.show_json(tokens)
        return
    rows = [
        (
            token["id"],
            token["subject"],
            token["role"],
            token["chat"] or "-",
            screen.moment(token["expires"]) or "never",
            screen.moment(token["used"]) or "never",
            screen.moment(token["revoked"]) or "no",
        )
        for token in tokens
    ]
    columns = ("id", "subject", "role", "chat", "expires", "last used", "revoked")
    screen.show_table(columns, rows)


@app.command()
def revoke(
    context: typer.Context,
    *,
    id: Annotated[str, typer.Argument(help="The token's id, not its secret.", metavar="ID")],
) -> None:
    """Refuse a token from now on."""

    async def work(client: Client) -> None:
        from hallporter.cli.host import in_path

        await client.delete(f"/api/tokens/{in_path(id)}")

    ask(context, work)
    screen.show(f"The token {id} is revoked.")
