"""When expressions fire, by croniter's matching and the arithmetic of zoneinfo.

The question is JSON. For every zone it asks for digests of the fires in a span of years; `detail` asks for the fires
themselves; `matching` asks croniter alone. Every local time of an expression fires once: in the stretch between two changes
of the clock in which it is shown first, and at the change where it is shown in none.
"""

import hashlib
import json
import sys
from array import array
from bisect import bisect_left
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from croniter import croniter

EPOCH = datetime(1970, 1, 1)
DAY = 86400


def local_times(text, first, last):
    """The local times that croniter finds, as seconds since an epoch that is local too."""
    found = []
    times = croniter(
        text, EPOCH + timedelta(seconds=first - 1), implement_cron_bug=True, second_at_beginning=True, ret_type=datetime
    )
    while True:
        at = (times.get_next() - EPOCH) // timedelta(seconds=1)
        if at > last:
            return found
        found.append(at)


def offset(zone, at):
    return int(datetime.fromtimestamp(at, timezone.utc).astimezone(zone).utcoffset().total_seconds())


def stretches(zone, first, last):
    """From when on which offset holds, to the second."""
    found = [(first, offset(zone, first))]
    for day in range(first, last, DAY):
        low, high = day, day + DAY
        before, after = found[-1][1], offset(zone, high)
        if before == after:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if offset(zone, middle) == before:
                low = middle
            else:
                high = middle
        found.append((high, after))
    return found


def fires(locals_, stretches_):
    """The instants of local times, rising, each once."""
    found = []
    done = 0
    ends = [start for start, _ in stretches_[1:]] + [float("inf")]
    for (start, off), end in zip(stretches_, ends):
        upto = bisect_left(locals_, end + off, done)
        found.extend([max(local - off, start) for local in locals_[done:upto]])
        done = max(done, upto)
    return list(dict.fromkeys(found))


def windows(stretches_, first):
    """A day to either side of each change; without any change two days somewhere."""
    changes = [start for start, _ in stretches_[1:]] or [first + 100 * DAY]
    merged = []
    for change in changes:
        low, high = change - DAY, change + DAY
        if merged and low <= merged[-1][1]:
            merged[-1][1] = high
        else:
            merged.append([low, high])
    return merged


def digest(times):
    numbers = array("q", times)
    if sys.byteorder != "little":
        numbers.byteswap()
    return [len(times), hashlib.sha256(numbers.tobytes()).hexdigest()]


def of_zone(name, question, sparse):
    first, last = question["first"], question["last"]
    around = stretches(ZoneInfo(name), first - 3 * DAY, last + 3 * DAY)
    inside = windows(around, first)
    all_sparse = [[at for at in fires(times, around) if first < at <= last] for times in sparse]
    all_dense = []
    for every in question["dense"]:
        found = []
        for low, high in inside:
            # Rounded to the expression's own times; two days more than any offset can move them.
            start = (low - 2 * DAY) // every * every
            times = list(range(start, high + 2 * DAY, every))
            found += [at for at in fires(times, around) if low < at <= high]
        all_dense.append(found)
    return inside, all_sparse + all_dense


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        question = json.load(file)
    answer = {"zones": {}, "matching": []}
    for text, first, last in question.get("matching", []):
        answer["matching"].append([at for at in local_times(text, first, last)])
    margin = 3 * DAY
    sparse = [
        local_times(text, question["first"] - margin, question["last"] + margin) for text in question.get("sparse", [])
    ]
    for name in question.get("zones", []):
        inside, lists = of_zone(name, question, sparse)
        if question.get("detail"):
            answer["zones"][name] = {"windows": inside, "fires": lists}
        else:
            answer["zones"][name] = {"windows": inside, "fires": [digest(times) for times in lists]}
    json.dump(answer, sys.stdout)


main()
