"""Makes the expected results in this directory from an installed Salt.

Run it with the Python of a Salt installation (the recorded results are from 3008.3):

    <salt>/bin/python regenerate.py

yaml.json    documents and what Salt's YAML loader makes of them
jinja.json   templates and what Salt's Jinja renderer makes of them
pillar/*.case    whole pillar trees: a request, files, and the pillar Salt compiles for them

Inputs are kept, results are replaced. New cases are added by hand, without a result, and filled in by a run.
"""

import base64
import json
import logging
import math
import pathlib
import re
import shutil
import tempfile
import warnings
from collections import OrderedDict

warnings.simplefilter("ignore")

import salt.config
import salt.fileclient
import salt.loader
import salt.pillar
import salt.utils.templates
import salt.utils.yamlloader

logging.disable(logging.CRITICAL)
HERE = pathlib.Path(__file__).resolve().parent


def plain(value):
    """A value as JSON; what JSON lacks is wrapped in a map with one key that starts with an exclamation mark."""
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: plain(item) for key, item in value.items()}
        return {"!map": [[plain(key), plain(item)] for key, item in value.items()]}
    if isinstance(value, (set, frozenset)):
        return {"!set": sorted(plain(item) for item in value)}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return {"!bytes": base64.b64encode(value).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"!float": str(value)}
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return {"!int": str(value)}
    return value


def load_yaml(text):
    loader = salt.utils.yamlloader
    return loader.load(text, Loader=lambda s: loader.SaltYamlSafeLoader(s, dictclass=OrderedDict))


def yaml_cases():
    path = HERE / "yaml.json"
    cases = json.loads(path.read_text())
    for case in cases:
        for key in ("out", "error", "line"):
            case.pop(key, None)
        try:
            case["out"] = plain(load_yaml(case["in"]))
        except Exception as exc:
            case["error"] = getattr(exc, "problem", None) or str(exc).splitlines()[0]
            if getattr(exc, "problem_mark", None):
                case["line"] = exc.problem_mark.line + 1
    write(path, cases)


def options(work, request, roots):
    opts = salt.config.DEFAULT_MASTER_OPTS.copy()
    opts.update(
        cachedir=str(work / "cache"),
        pki_dir=str(work / "pki"),
        sock_dir=str(work / "sock"),
        conf_file=str(work / "master"),
        root_dir=str(work),
        extension_modules=str(work / "extmods"),
        file_roots={"base": []},
        pillar_roots=roots,
        renderer="jinja|yaml",
        __role="master",
    )
    opts.update(request.get("opts", {}))
    return opts


CONTEXT = {
    "grains": {
        "id": "web1", "os": "Debian", "os_family": "Debian", "osmajorrelease": 12, "num_cpus": 4,
        "roles": ["web", "db"], "nested": {"a": {"b": "deep"}, "list": [{"x": 1}, {"x": 2}]},
    },
    "pillar": {"key": "value", "map": {"a": 1, "b": [1, 2]}, "text": "two\nlines\n"},
}


def jinja_cases():
    path = HERE / "jinja.json"
    cases = json.loads(path.read_text())
    with tempfile.TemporaryDirectory() as tmp:
        work = pathlib.Path(tmp)
        files = work / "root"
        files.mkdir()
        for name, text in cases["files"].items():
            (files / name).parent.mkdir(parents=True, exist_ok=True)
            (files / name).write_text(text)
        opts = options(work, {}, {"base": [str(files)]})
        opts.update(file_client="local", grains=CONTEXT["grains"], pillar=CONTEXT["pillar"], id="web1",
                    pillarenv=None, saltenv=None)
        functions = salt.loader.minion_mods(opts, utils=salt.loader.utils(opts))
        functions.pack["__pillar__"] = CONTEXT["pillar"]
        client = salt.fileclient.get_file_client(opts, True)
        for case in cases["cases"]:
            for key in ("out", "error"):
                case.pop(key, None)
            try:
                result = salt.utils.templates.JINJA(
                    case["in"], from_str=True, to_str=True, salt=functions, grains=CONTEXT["grains"], opts=opts,
                    pillar=CONTEXT["pillar"], saltenv="base", sls="dir.case", tmplpath=str(files / "dir/case.sls"),
                    _pillar_rend=True, fileclient=client,
                )
                if not result["result"]:
                    raise ValueError(result["data"].strip().splitlines()[-1])
                case["out"] = result["data"]
            except Exception as exc:
                case["error"] = str(exc).splitlines()[0]
    write(path, cases)


def pillar_cases():
    for path in sorted((HERE / "pillar").glob("*.case")):
        parts = re.split(r"^-- (.+) --\n", path.read_text(), flags=re.M)[1:]
        sections = list(zip(parts[::2], parts[1::2]))
        request = json.loads(dict(sections)["request"])
        with tempfile.TemporaryDirectory() as tmp:
            work = pathlib.Path(tmp)
            roots = {}
            for env in request.get("envs", ["base"]):
                (work / "roots" / env).mkdir(parents=True)
                roots[env] = [str(work / "roots" / env)]
            for name, text in sections:
                if name not in ("request", "expected"):
                    target = work / "roots" / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(text)
            opts = options(work, request, roots)
            grains = request.get("grains", {})
            pillar = salt.pillar.Pillar(
                opts, grains, request.get("id", "web1"), request.get("saltenv"),
                pillar_override=request.get("override"), pillarenv=request.get("pillarenv"),
            )
            result = json.dumps(plain(pillar.compile_pillar()), indent=1, ensure_ascii=False)
            result = result.replace(tmp, "<root>")
        text = "".join(f"-- {name} --\n{body}" for name, body in sections if name != "expected")
        path.write_text(f"{text}-- expected --\n{result}\n")


def write(path, cases):
    path.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    yaml_cases()
    jinja_cases()
    pillar_cases()
