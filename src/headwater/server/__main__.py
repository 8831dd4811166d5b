"""``python -m headwater.server``: a broker as a child process or a service, without a command-line library."""

from __future__ import annotations

import sys

from headwater.core.errors import HeadwaterError


def main(arguments: list[str]) -> int:
    from headwater.server.options import USAGE, parse

    if "--help" in arguments:
        sys.stdout.write(USAGE)
        return 0
    try:
        options = parse(arguments)
    except HeadwaterError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    from headwater.server.app import run

    return run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
