"""A stream of unknown length: hold, count, capture. Usage: stream.py TENANT METER"""

import sys

from quotasvc import Denied, Quota


def answer_of_a_model() -> list[str]:
    return ["Quotas ", "are ", "kept."]


def main(tenant: str, meter: str) -> int:
    with Quota() as quota:
        try:
            with quota.hold(tenant, meter, 4, ttl=600) as hold:
                for part in answer_of_a_model():
                    print(part, end="", flush=True)
                    hold.add(1)
            print()
        except Denied as denied:
            print(f"not now: {denied}")
            return 1
        print(f"charged {hold.captured}, remaining {quota.balance(tenant, meter).remaining}")
        return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
