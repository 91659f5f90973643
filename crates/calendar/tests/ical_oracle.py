"""The windows of calendars, by icalendar and recurring-ical-events.

The question is JSON: a list of calendars, each with its text, the zone of times that name none, and a span. The answer has
for each the instances that reach into the span: start and end in seconds, summary, UID.

The library adds the length of an event to the wall clock. By RFC 5545 (3.8.5.3) only the days of a DURATION are counted by
the clock, all else is exact; how many days those are, the event says in X-DAYS. Cancelled instances are given by the library
with their status, and left out here; so is what lasts no time.
"""

import json
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import icalendar
import recurring_ical_events

# The library compares times that name no zone with those of the span as they are: a wider one makes up for it.
MARGIN = timedelta(days=45)


def instant(time, zone):
    if not isinstance(time, datetime):
        time = datetime(time.year, time.month, time.day)
    if time.tzinfo is None:
        time = time.replace(tzinfo=zone)
    return int(time.timestamp())


def instances(question):
    zone = ZoneInfo(question["zone"])
    calendar = icalendar.Calendar.from_ical(question["text"])
    first, last = (datetime.fromtimestamp(question[end], timezone.utc) for end in ("from", "to"))
    found = set()
    for event in recurring_ical_events.of(calendar).between(first - MARGIN, last + MARGIN):
        if event.get("STATUS") == "CANCELLED":
            continue
        start, end = event["DTSTART"].dt, event["DTEND"].dt
        if isinstance(start, datetime):
            by_clock = timedelta(days=int(event.get("X-DAYS", 0)))
            length = end.replace(tzinfo=None) - start.replace(tzinfo=None)
            if length < by_clock:  # an RDATE with a length of its own, which has no days
                by_clock = timedelta()
            end = instant(start + by_clock, zone) + int((length - by_clock).total_seconds())
        else:
            end = instant(end, zone)
        start = instant(start, zone)
        if start < question["to"] and end > question["from"] and start < end:
            found.add((start, end, str(event["SUMMARY"]), str(event["UID"])))
    return sorted(found)


with open(sys.argv[1], encoding="utf-8") as file:
    print(json.dumps([instances(question) for question in json.load(file)]))
