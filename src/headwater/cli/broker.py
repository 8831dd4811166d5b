"""`headwater broker`: the broker itself, in this process. Nothing of librdkafka is loaded."""
from __future__ import annotations

import click

from headwater.cli.options import Verb

EXAMPLES = """
headwater broker
headwater broker --data /var/lib/headwater --listen 127.0.0.1:9192
headwater broker --listen 0.0.0.0:9092 --advertise kafka.local:9092 --insecure-listen
headwater broker --set log.retention.hours=24 --set num.partitions=4
"""


@click.command(cls=Verb, examples=EXAMPLES)
@click.option("--data", default="./data", show_default=True, metavar="DIR", help="Where the log is kept.")
@click.option("--listen", default="127.0.0.1:9092", show_default=True, metavar="HOST:PORT",
              help="Where clients connect; port 0 takes a free one.")
@click.option("--advertise", metavar="HOST:PORT", help="The address that clients are told (containers, WSL).")
@click.option("--insecure-listen", is_flag=True,
              help="Allow an address that others can reach: there is no TLS and no password yet.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
              help="A broker setting under Kafka's name; may be given several times.")
def broker(data: str, listen: str, advertise: str | None, insecure_listen: bool, settings: tuple[str, ...]) -> int:
    """Run a broker until Ctrl-C or SIGTERM.

    Any Kafka client can use it. What it has acknowledged is on the disk. Its address is written to
    DIR/endpoint, where the other verbs find it.
    """
    from headwater.server.app import run
    from headwater.server.options import Options

    for option, address in (("--listen", listen), ("--advertise", advertise)):
        if address is not None and address.isdecimal():
            raise click.UsageError(
                f"{option} takes HOST:PORT. Did you mean {option} 127.0.0.1:{address}?", click.get_current_context()
            )
    pairs: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"write --set NAME=VALUE, not {setting}", param_hint="--set")
        pairs[name] = value
    options = Options(
        data=data, listen=listen, advertise=advertise, insecure_listen=insecure_listen, settings=pairs, mode="own"
    )
    return int(run(options) or 0)
