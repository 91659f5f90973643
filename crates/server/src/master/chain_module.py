"""
Run this machine's part of an action chain, and always know how far it got.

The server splits a chain into chunks, which end where the machine reboots or the agent is replaced, and sends one at a
time. A chunk is on disk before anything is done, and again before and after each of its steps: after a power cut at any
instant it is known which steps have ended, which was under way, and which have not begun. Nothing is run twice unless
its step says that it may be.

Whoever works on the chunk holds a lock on a file: a step that is `started` while nobody holds the lock was interrupted.

Answers: ``{"launch", "chunk", "state", "boot_id", "alive", "cancelled", "steps": {id: {"state", "ret", "retcode",
"started", "ended"}}}``. A chunk is `running`, `rebooting`, `updating`, `done`, `failed`, `stopped` or `cancelled`, or
there is `none`; `alive` says whether somebody works on it now. What cannot be done is answered as
``{"error": word, ...}``.
"""

import contextlib
import datetime
import json
import os
import signal
import time
import traceback

import salt.utils.args
from salt.exceptions import CommandExecutionError, CommandNotFoundError, SaltInvocationError

try:
    import fcntl
except ImportError:
    fcntl = None

__virtualname__ = "saltern_chain"

BOOT_ID = "/proc/sys/kernel/random/boot_id"
VERSION = 1

# Largest result that is kept, and that is told while the chunk runs, in characters of JSON.
KEPT = 16 << 20
TOLD = 1 << 20

# Largest part of a result that is shown beside what was expected of it, in characters of JSON.
SHORT = 200

# How often a repeatable step is begun before it counts as interrupted all the same.
TRIES = 3

# How many cancelled launches are remembered.
REMEMBERED = 50

# Seconds: for a lock that is held only to look; for one whose holder was killed; between two tries of a state run.
BRIEFLY = 1
AFTER_KILL = 10
BETWEEN_TRIES = 1

OPEN = ("running", "rebooting", "updating")
SHOWN = ("state", "ret", "retcode", "cut", "started", "ended", "boot_id")


def __virtual__():
    if fcntl is None:
        return False, "saltern_chain needs a system with file locks (fcntl)"
    return __virtualname__


def start(launch, chunk, steps, options=None, **kwargs):
    """
    Run a chunk of an action chain. The same chunk is never run twice: a second start answers how far it got.

    launch
        id of the launch
    chunk
        its number, from 1
    steps
        list of maps: ``id``, ``kind`` (call, check, reboot, update), ``fun``, ``arg``, ``kwarg``, ``repeatable``
        (may be run again if it is interrupted), ``after`` (ok, failed, always), ``expect`` (what a check must return;
        none: anything will do)
    options
        ``failed``: a step before this chunk has failed

    CLI Example::

        salt '*' saltern_chain.start 17 1 '[{"id": "a", "kind": "call", "fun": "test.ping"}]'
    """
    options = options or {}
    if not isinstance(options, dict):
        raise SaltInvocationError("options must be a map")
    if isinstance(chunk, bool) or not isinstance(chunk, int) or chunk < 1:
        raise SaltInvocationError("chunk must be a number from 1")
    return _answer(_start, str(launch), chunk, _plan(steps), options, _published(kwargs))


def resume(**kwargs):
    """
    Decide what became of the chunk while the agent was away, run what is left of it, and tell how it stands.

    CLI Example::

        salt '*' saltern_chain.resume
    """
    return _answer(_resume, _published(kwargs))


def status():
    """
    Tell how the chunk stands, without running or writing anything.

    CLI Example::

        salt '*' saltern_chain.status
    """
    return _answer(_status)


def cancel(launch):
    """
    Begin nothing more of a launch, now or after a reboot. A step that is under way is finished.

    CLI Example::

        salt '*' saltern_chain.cancel 17
    """
    return _answer(_cancel, str(launch), False)


def stop(launch):
    """
    Like cancel, and kill the step that is under way.

    CLI Example::

        salt '*' saltern_chain.stop 17
    """
    return _answer(_cancel, str(launch), True)


def clear(launch=None, force=False):
    """
    Remove what is kept of a chunk that has ended; with force, of any that nobody works on. A damaged file is renamed.

    CLI Example::

        salt '*' saltern_chain.clear 17
        salt '*' saltern_chain.clear force=True
    """
    return _answer(_clear, None if launch is None else str(launch), force is True)


# --- what the functions do -------------------------------------------------------------------------------------------


def _start(launch, chunk, plan, options, pub):
    with _Lock("lock", fcntl.LOCK_EX) as mine:
        store = _read_store()
        if not mine and store is None:
            return _error("busy", launch=None, chunk=None)
        if mine and store is not None:
            _settle(store)
        refusal = _refusal(store, launch, chunk, alive=not mine)
        if refusal:
            return refusal
        failed = bool(options.get("failed"))
        if store is not None and store["launch"] == launch:
            failed = failed or _has_failed(store) or store["state"] == "stopped"
        store = {
            "version": VERSION,
            "launch": launch,
            "chunk": chunk,
            "state": "running",
            "failed": failed,
            "steps": plan,
        }
        return _run(store, pub)


def _refusal(store, launch, chunk, alive):
    """The answer to a start that runs nothing; none if it may run."""
    if store is not None:
        if store["launch"] == launch:
            if store["chunk"] == chunk:
                return _view(store, alive)
            if chunk < store["chunk"]:
                return _error("past", store)
            # An update that killed its agent is judged by the check that begins the next chunk.
            if store["state"] in OPEN and (alive or store["state"] != "updating"):
                return _error("not_yet", store)
        elif store["state"] in OPEN:
            return _error("busy", store)
    if launch in _cancelled():
        return _error("cancelled", launch=launch, chunk=chunk)
    return None


def _resume(pub):
    with _Lock("lock", fcntl.LOCK_EX) as mine:
        store = _read_store()
        if store is None or not mine:
            return _view(store, alive=not mine)
        before = json.dumps(store)
        _settle(store)
        if store["state"] == "running":
            return _run(store, pub)
        if json.dumps(store) != before:
            _write("store.json", store)
        return _view(store)


def _status():
    with _Lock("lock", fcntl.LOCK_SH) as free:
        store = _read_store()
        if store is not None and free:
            _settle(store)
        return _view(store, alive=not free)


def _cancel(launch, kill):
    with _Lock("list", fcntl.LOCK_EX) as mine:
        if not mine:
            return _error("store", reason="the list of cancelled launches is locked")
        # Written where the one at work looks before each step, and kept for a start that is still on its way.
        cancelled = [known for known in _cancelled() if known != launch] + [launch]
        _write("cancelled.json", cancelled[-REMEMBERED:])
    if kill:
        _kill(launch)
    with _Lock("lock", fcntl.LOCK_EX, AFTER_KILL if kill else BRIEFLY) as mine:
        store = _read_store()
        if store is None or store["launch"] != launch:
            # Nothing of it is here, and nothing of it will run.
            return dict(_view(None), launch=launch, state="cancelled", cancelled=True)
        if mine:
            _settle(store)
            _write("store.json", store)
        return _view(store, alive=not mine)


def _kill(launch):
    """Kill the process that works on a launch, with all it has started."""
    with _Lock("lock", fcntl.LOCK_SH) as free:
        store = None if free else _read_store()
    # Where jobs are threads, their process is the agent itself, and ours.
    if store is None or store["launch"] != launch or store["process"][0] == os.getpid():
        return
    pid, started = store["process"]
    if started is None or _process(pid)[1] != started:
        return
    # First of all it stands still: it must not see its children die, and take that for the end of its step.
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    parents = {int(name): _process(name)[0] for name in os.listdir("/proc") if name.isdigit()}
    doomed = [pid]
    for parent in doomed:
        doomed.extend(child for child in parents if parents[child] == parent)
    for process in reversed(doomed):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _process(pid):
    """A process: its parent, and when it was started."""
    try:
        with open("/proc/{}/stat".format(pid), encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
            return [int(fields[1]), int(fields[19])]
    except OSError:
        return [None, None]


def _clear(launch, force):
    with _Lock("lock", fcntl.LOCK_EX) as mine:
        try:
            store = _read_store()
            _cancelled()
        except _Damaged as damaged:
            if not (force and mine):
                raise
            kept = damaged.path + ".damaged"
            os.rename(damaged.path, kept)
            _sync(_path(""))
            return dict(_view(None), cleared=None, kept=kept)
        if store is None:
            return dict(_view(None), cleared=None)
        if launch is not None and store["launch"] != launch:
            return _error("other", store)
        if mine:
            _settle(store)
        if not mine or (store["state"] in OPEN and not force):
            return _error("open", store)
        for name in ("store.json", "store.json.new"):
            if os.path.exists(_path(name)):
                os.remove(_path(name))
        _sync(_path(""))
        return dict(_view(None), cleared=store["launch"])


# --- running ---------------------------------------------------------------------------------------------------------


def _run(store, pub):
    """Run what waits. The lock is ours."""
    store.update(jid=pub.get("__pub_jid"), process=[os.getpid(), _process(os.getpid())[1]])
    tell, about_to_begin = _Progress(store), None
    try:
        _write("store.json", store)
        for step in store["steps"]:
            record = step["record"]
            if record["state"] != "waiting":
                continue
            if store["launch"] in _cancelled():
                break
            if step["after"] != "always" and _has_failed(store) != (step["after"] == "failed"):
                record["state"] = "skipped"
                continue
            record.update(state="started", started=_now(), tries=record.get("tries", 0) + 1)
            if step["kind"] == "reboot":
                record["boot_id"] = _boot_id()
            _conclude(store)
            about_to_begin = record
            _write("store.json", store)
            about_to_begin = None
            tell(step)
            _crash_point()
            ended = _run_step(store, step, pub)
            _crash_point()
            record.update(ended)
            _conclude(store)
            _write("store.json", store)
            if record["state"] != "started":
                tell(step)
        _conclude(store)
        _write("store.json", store)
    except OSError as error:
        # What is known in memory is told now: the disk cannot tell it later.
        if about_to_begin is not None:
            about_to_begin["state"] = "waiting"
        return dict(_view(store), error="store", reason=str(error))
    return _view(store)


def _run_step(store, step, pub):
    """Call a step's function; what is to be recorded of it."""
    if step["kind"] == "reboot" and not step["record"]["boot_id"]:
        return _ended("failed", "ERROR: this machine tells no boot id, so a reboot could not be proven", 1)
    while True:
        ret, retcode = _call(step, pub)
        if not _waits_for_states(step, ret):
            break
        if store["launch"] in _cancelled():
            return _ended("cancelled", ret, retcode)
        time.sleep(BETWEEN_TRIES)
    if retcode:
        return _ended("failed", ret, retcode)
    if step["kind"] == "reboot":
        # Done when the machine is up again under another boot id.
        return _within(_plain(ret), KEPT)
    differs = _difference(step, _plain(ret))
    return _ended("failed", differs, 1) if differs else _ended("done", ret, retcode)


def _ended(state, ret, retcode):
    return dict(_within(_plain(ret), KEPT), state=state, retcode=retcode, ended=_now())


def _within(ret, most):
    """A result, or the beginning of its JSON and that it is only that."""
    text = json.dumps(ret)
    return {"ret": ret} if len(text) <= most else {"ret": text[:most], "cut": True}


def _difference(step, ret):
    """What is wrong with a check's return; none if it is what was expected, or nothing was."""
    if step.get("expect") is None:
        return None
    gave, wanted = _compact(ret), _compact(step["expect"])
    if gave == wanted:
        return None
    return "not updated: {} gave {}, wanted {}".format(step["fun"], _short(gave), _short(wanted))


def _compact(value):
    """JSON that is the same text for the same value, whatever the order of its keys."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _short(text):
    return text if len(text) <= SHORT else text[:SHORT] + "..."


def _call(step, pub):
    """Call a function as the agent itself does, and judge its return by the same rules."""
    fun = step["fun"]
    if fun not in __salt__:
        return "'{}' is not available.".format(fun), 1
    __context__["retcode"] = 0
    try:
        ret = __salt__[fun](*step["arg"], **_keywords(step, pub))
    except CommandNotFoundError as error:
        return "Command required for '{}' not found: {}".format(fun, error), 1
    except CommandExecutionError as error:
        return "ERROR: {}".format(error), 1
    except SaltInvocationError as error:
        return "ERROR executing '{}': {}".format(fun, error), 1
    except TypeError as error:
        return "Passed invalid arguments to {}: {}".format(fun, error), 1
    except (Exception, SystemExit):  # pylint: disable=broad-except
        return "The minion function caused an exception: {}".format(traceback.format_exc()), 1
    retcode = __context__.get("retcode", 0)
    if isinstance(ret, dict) and not retcode:
        is_queued = ret.get("__no_return__") is True
        retcode = int(is_queued or not all(ret.get(key, True) for key in ("result", "success")))
    return ret, retcode if isinstance(retcode, int) else 1


def _keywords(step, pub):
    """The step's keyword arguments, with what the agent adds for functions that take any."""
    spec = salt.utils.args.get_function_argspec(__salt__[step["fun"]])
    keywords = dict(pub, __pub_fun=step["fun"], __pub_arg=step["arg"]) if spec.keywords else {}
    keywords.update(step["kwarg"])
    if step["fun"].startswith("state.") and (spec.keywords or "queue" in spec.args):
        # Some versions answer at once that they have queued it, and run it later as another job: we wait ourselves.
        keywords["queue"] = False
    return keywords


def _waits_for_states(step, ret):
    """Whether a state run did nothing because another one is under way, and may be tried again."""
    is_conflict = isinstance(ret, list) and bool(ret) and all("is running as PID" in str(line) for line in ret)
    return is_conflict and step["fun"].startswith("state.") and step["kwarg"].get("queue", True) is not False


class _Progress:
    """Tells the master about steps while they run. What gets lost on the way is in the answer."""

    def __init__(self, store):
        self.store, self.number = store, 0

    def __call__(self, step):
        jid, record = self.store["jid"], step["record"]
        if not jid:
            return
        self.number += 1
        data = {key: self.store[key] for key in ("launch", "chunk")}
        data.update(step=step["id"], state=record["state"])
        # An event may be late: when it was is told with it.
        data.update({key: record[key] for key in ("started", "ended") if key in record})
        if "ended" in record:
            data.update(_within(record["ret"], TOLD), retcode=record["retcode"])
        with contextlib.suppress(Exception):
            __salt__["event.fire_master"](data, "salt/job/{}/prog/{}/{}".format(jid, __opts__["id"], self.number))


# --- what is known ---------------------------------------------------------------------------------------------------


def _settle(store):
    """Decide what became of the steps that were under way. Nobody works on the chunk."""
    boot, is_cancelled = _boot_id(), store["launch"] in _cancelled()
    for step in store["steps"]:
        record = step["record"]
        if record["state"] != "started":
            continue
        may_repeat = step["repeatable"] and not is_cancelled and record.get("tries", 0) < TRIES
        if step["kind"] == "reboot":
            if boot and boot != record["boot_id"]:
                record.update(state="done", retcode=0, ended=_now())
            elif may_repeat and "ret" not in record:
                record["state"] = "waiting"
        elif step["kind"] == "update" and not is_cancelled:
            pass
        elif may_repeat:
            record["state"] = "waiting"
        else:
            record.update(state="interrupted", ended=_now())
    _conclude(store)


def _conclude(store):
    """Bring the chunk's state in line with that of its steps."""
    records = [step["record"] for step in store["steps"]]
    under_way = [step["kind"] for step in store["steps"] if step["record"]["state"] == "started"]
    is_cancelled = not under_way and store["launch"] in _cancelled()
    if is_cancelled or any(record["state"] == "interrupted" for record in records):
        for record in records:
            if record["state"] == "waiting":
                record["state"] = "cancelled" if is_cancelled else "skipped"
    states = {record["state"] for record in records}
    if under_way:
        store["state"] = {"reboot": "rebooting", "update": "updating"}.get(under_way[0], "running")
    elif "waiting" in states:
        store["state"] = "running"
    elif "interrupted" in states:
        store["state"] = "stopped"
    elif _has_failed(store):
        store["state"] = "failed"
    else:
        store["state"] = "cancelled" if "cancelled" in states else "done"


def _has_failed(store):
    return store["failed"] or any(step["record"]["state"] == "failed" for step in store["steps"])


def _view(store, alive=False):
    """The answer that tells how a chunk stands."""
    if store is None:
        store, alive = {"launch": None, "chunk": None, "state": "none", "steps": []}, False
    records = [(step["id"], step["record"]) for step in store["steps"]]
    return {
        "launch": store["launch"],
        "chunk": store["chunk"],
        "state": store["state"],
        "boot_id": _boot_id(),
        "alive": alive and store["state"] in OPEN,
        "cancelled": store["launch"] in _cancelled(),
        "steps": {name: {key: record[key] for key in SHOWN if key in record} for name, record in records},
    }


def _error(word, store=None, **more):
    if store is not None:
        more.update({key: store[key] for key in ("launch", "chunk", "state")}, boot_id=_boot_id())
    return dict(more, error=word)


def _answer(work, *args):
    try:
        answer = work(*args)
    except _Damaged as damaged:
        answer = _error("damaged", file=damaged.path, reason=damaged.reason)
    except OSError as error:
        answer = _error("store", reason=str(error))
    __context__["retcode"] = int("error" in answer or answer["state"] in ("failed", "stopped"))
    return answer


# --- arguments -------------------------------------------------------------------------------------------------------


def _published(kwargs):
    """What the agent adds to a call; anything else is a mistake."""
    unknown = [key for key in kwargs if not key.startswith("__pub_")]
    if unknown:
        raise SaltInvocationError("unknown arguments: {}".format(", ".join(sorted(unknown))))
    return kwargs


def _plan(steps):
    """The steps, checked, each with an empty record."""
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        raise SaltInvocationError("steps must be a list of maps")
    plan = []
    for step in steps:
        name, kind, fun = step.get("id"), step.get("kind") or "call", step.get("fun")
        arg, kwarg, after = step.get("arg") or [], step.get("kwarg") or {}, step.get("after") or "ok"
        expect = _plain(step.get("expect"))
        problem = None
        if not isinstance(name, str) or not name or name in [other["id"] for other in plan]:
            problem = "needs an id of its own"
        elif not isinstance(fun, str) or fun.startswith(__virtualname__ + "."):
            problem = "needs a function outside of this module"
        elif not isinstance(arg, list) or not isinstance(kwarg, dict):
            problem = "arg must be a list and kwarg a map"
        elif kind not in ("call", "check", "reboot", "update"):
            problem = "unknown kind {!r}".format(kind)
        elif after not in ("ok", "failed", "always"):
            problem = "unknown after {!r}".format(after)
        elif expect is not None and kind != "check":
            problem = "only a check has an expectation"
        elif plan and plan[-1]["kind"] in ("reboot", "update"):
            problem = "a chunk ends with its reboot or update"
        if problem:
            raise SaltInvocationError("step {}: {}".format(name, problem))
        repeatable, record = step.get("repeatable") is True, {"state": "waiting"}
        plan.append(dict(
            id=name, kind=kind, fun=fun, arg=arg, kwarg=kwarg, repeatable=repeatable, after=after, expect=expect,
            record=record
        ))
    return plan


def _plain(value):
    """A return as JSON can keep it."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return str(value)


# --- the disk --------------------------------------------------------------------------------------------------------


class _Damaged(Exception):
    """A file of ours that cannot be read. It is never taken for an empty one."""

    def __init__(self, path, reason):
        super().__init__(reason)
        self.path, self.reason = path, reason


def _path(name):
    return os.path.join(__opts__["cachedir"], "saltern_chain", name)


def _read_store():
    store = _read("store.json", dict)
    if store is not None and store.get("version") != VERSION:
        raise _Damaged(_path("store.json"), "it is not of this version")
    return store


def _cancelled():
    """The launches of which nothing more is to begin."""
    return _read("cancelled.json", list) or []


def _read(name, kind):
    try:
        with open(_path(name), "rb") as file:
            value = json.loads(file.read().decode("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise _Damaged(_path(name), str(error)) from error
    if not isinstance(value, kind):
        raise _Damaged(_path(name), "it is not a {}".format(kind.__name__))
    return value


def _write(name, value):
    """Replace a file whole, and make it last."""
    content = json.dumps(value).encode("utf-8")
    path = _path(name)
    fresh = path + ".new"
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            _crash_point()
            os.fsync(file.fileno())
        _crash_point()
        os.rename(fresh, path)
    except OSError:
        # A file that could not be finished is of no use, and may be what fills the disk.
        if os.path.exists(fresh):
            os.remove(fresh)
        raise
    _crash_point()
    _sync(_path(""))
    _crash_point()


def _sync(folder):
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Lock:
    """A lock, of whoever works on the chunk or changes the list. Gives whether it was free, after waiting a little."""

    held = set()

    def __init__(self, name, kind, patience=BRIEFLY):
        self.name, self.kind, self.patience, self.file = name, kind, patience, None

    def __enter__(self):
        if not os.path.isdir(_path("")):
            os.makedirs(_path(""), 0o700, exist_ok=True)
            _sync(__opts__["cachedir"])
        self.file = open(_path(self.name), "a+b")
        self.held.add(self.file)
        until = time.monotonic() + self.patience
        while True:
            try:
                fcntl.flock(self.file, self.kind | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() >= until:
                    return False
            time.sleep(0.02)

    def __exit__(self, *_):
        self.held.discard(self.file)
        self.file.close()

    @classmethod
    def leave_behind(cls):
        # A child that outlives us must not look as if we were still at work.
        while cls.held:
            cls.held.pop().close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Lock.leave_behind)


def _boot_id():
    path = __opts__.get("saltern_boot_id_file") or __grains__.get("saltern_boot_id_file") or BOOT_ID
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def _now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f+00:00")


_points = 0


def _crash_point():
    """Where the tests cut the power: at the point whose number is in the environment."""
    global _points  # pylint: disable=global-statement
    wanted = os.environ.get("SALTERN_CHAIN_CRASH_AT")
    if wanted:
        _points += 1
        if str(_points) == wanted:
            os.kill(os.getpid(), signal.SIGKILL)
