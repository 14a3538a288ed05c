"""Thousands of decisions a second from units that are held ahead. Usage: hot_path.py TENANT METER NUMBER"""

import sys

from quotasvc import LocalDenied, LocalUnits, Quota


def main(tenant: str, meter: str, number: str) -> int:
    refused = 0
    with Quota() as quota, LocalUnits(quota, tenant, meter, min=500) as units:
        for _ in range(int(number)):
            try:
                units.take_wait()  # in a handler: units.take(), which never waits
            except LocalDenied:
                refused += 1
    stats = units.stats()
    print(f"taken {stats.taken}, refused {refused}, charged {stats.captured}, requests {stats.requests}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
