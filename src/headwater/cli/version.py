"""`headwater version`: everything that a report of a bug has to name."""
from __future__ import annotations

import click

from headwater.cli.options import Verb
from headwater.cli.output import write_json, write_table


@click.command(cls=Verb, examples="headwater version\nheadwater version --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def version(as_json: bool) -> None:
    """Show the versions of headwater, Python, librdkafka, and which record kernel runs (C or Python)."""
    facts = collect()
    if as_json:
        write_json(facts)
    else:
        write_table(["part", "version"], facts.items(), plain=True)


def collect() -> dict[str, str]:
    import platform

    from headwater import __version__
    from headwater.wire import kernel

    facts = {
        "headwater": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        "record kernel": kernel.NAME,
    }
    try:
        import confluent_kafka
    except ImportError:
        facts["librdkafka"] = "missing: pip install confluent-kafka"
    else:
        facts["librdkafka"] = str(confluent_kafka.libversion()[0])
        facts["confluent-kafka"] = str(confluent_kafka.version())
    return facts
