"""
Tell the master that a job has begun, then let the next executor run it.

Synced to minions that have no other way to say so. It never fails a job: whatever goes wrong here is ignored.
"""


def execute(opts, data, func, args, kwargs):
    try:
        jid = data.get("jid")
        __salt__["event.fire_master"](
            {"jid": jid, "fun": data.get("fun")},
            "salt/job/{}/ack/{}".format(jid, opts["id"]),
        )
    except Exception:  # pylint: disable=broad-except
        pass
    return None
