#!/usr/bin/env python3
"""Asks Salt itself whom targets mean, and writes the answers to targets_oracle.json beside this file.

Run with the Python of a Salt installation (the answers were taken from 3008.3):
    <salt>/bin/python crates/core/tests/targets_oracle.py

A case is (type, target, options). Options: delimiter; refused = we fail to compile what Salt matches nobody with;
why = we mean something else on purpose (ours = whom).
"""
import json
import logging
import pathlib
import types
import warnings

import salt.client
import salt.config
import salt.loader
import salt.utils.minions
import salt.version

logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")

# Keys that are not text are written {"$map": [[key, value], ...]} in the file.
MINIONS = [
    {
        "id": "web1.example.org",
        "grains": {
            "os": "Debian",
            "osrelease": "12",
            "osmajorrelease": 12,
            "roles": ["web", "Proxy", "db:master"],
            "ipv4": ["127.0.0.1", "10.1.2.3", "192.168.7.9"],
            "ipv6": ["::1", "fe80::1", "2001:db8::5"],
            "virtual": None,
            "systemd": {"version": "252", "features": "+PAM +AUDIT"},
            "ec2": {"tags": {"Name": "Web One", "env": "prod"}, "zone": "eu-1a"},
            "disks": [{"sda": {"size": 100, "ssd": True}}, {"sdb": {"size": 200, "ssd": False}}, "nvme0"],
            "load": 1.5,
            "tiny": 0.00001,
            "huge": 1e16,
            "big": 18446744073709551615,
            "neg": -3,
            "locale": "Žluťoučký",
            "path": "C:\\Program Files",
            "url": "https://example.org:8080/x",
            "star*": "literal",
            "*": "starred",
            "multi\nline": "a\nb",
            "trailing": "value\n",
            "empty": "",
            "emptylist": [],
            "emptymap": {},
            "nested": {"list": [["a", "b"], {"c": ["d", {"e": "f"}]}, 7], "map": {"a": {"b": {"c": "deep"}}}},
            "col:on": "never",
            "quote": ["it's", 'say "x"'],
            "ports": {80: "http", 443: "https", 1.5: "half", True: "yes", None: "nothing"},
            "lists": [10, 20, 30, {0: "zero"}],
        },
        "pillar": {
            "who": "mini",
            "flag": True,
            "off": False,
            "num": 5,
            "nil": None,
            "a": {"b": ["x", "y"], "c": {"d": "Deep"}},
            "users": {"alice": {"uid": 1000, "shell": "/bin/bash"}, "Bob": {"uid": 1001}},
            "apps": [{"name": "one", "port": 80}, {"name": "two", "port": 443}],
            "secret": "S3cret*",
        },
    },
    {
        "id": "web2.example.org",
        "grains": {
            "os": "Ubuntu",
            "osrelease": "22.04",
            "osmajorrelease": 22,
            "roles": "web",
            "ipv4": ["10.9.0.1", "127.0.0.1"],
            "ipv6": ["::1", "2001:db8:1::1", "fe80::2%eth0"],
            "systemd": False,
            "ec2": {"tags": {"Name": "web two", "env": "test"}},
            "disks": [],
        },
        "pillar": {"who": "Maxi", "flag": False, "num": 50, "users": {"carol": {}}, "a": {"b": "x"}},
    },
    {
        "id": "DB-1",
        "grains": {
            "os": "RedHat",
            "osrelease": "9",
            "roles": [],
            "ipv4": ["172.16.0.5"],
            "ec2": None,
            "nested": "list",
            "ports": "80",
        },
        "pillar": {},
    },
    {"id": "a_b@c", "grains": {"os": ["Debian", "Fake"], "ipv4": "10.1.2.3", "num": 12, "x": {"y": {"z": [1, 2]}}}, "pillar": {"a": ["c", {"c": {"d": "e"}}], "nil": "None"}},
]

NODEGROUPS = {
    "web": "web1.example.org or web2.example.org",
    "names": "web1.example.org,DB-1",
    "words": ["web1.example.org", "DB-1"],
    "listed": ["web*", "or", "DB-*"],
    "onestring": ["web* or DB-*"],
    "grain": "G@os:Debian",
    "regex": "web[12]",
    "question": "DB-?",
    "nested": "N@grain or N@names",
    "deep": "N@nested and not N@words",
    "both": "N@words or a_b@c",
    "loop": "N@loop2 or DB-1",
    "loop2": "N@loop",
    "dangling": "DB-1 or",
    "twoglobs": "web* DB*",
    "paren": "( web* and not web2* ) or DB-1",
    "comma": "L@DB-1,a_b@c",
}

CASES = []


def cases(kind, *targets, **options):
    CASES.extend((kind, target, options) for target in targets)


# ids: glob
cases("glob", "*", "web*", "web?.example.org", "web[12].example.org", "web[!1]*", "[wD]*", "[!w]*", "*example*", "*.org", "DB-1", "db-1",
      "web1", "web1.example.org", "*1*", "*@*", "?????", "????", "**", "*b*", "[a-z]*", "[A-Z]*", "[A-Z]?-[0-9]", "web[1", "[", "]", "[]", "[!]*", "[]w]*",
      "{web1,web2}*", "web{1,2}*", "web1.example.org,DB-1", "a_b@c", "*_*", "\\*", "web[2-1]*", "[D-]B[-]1", "[^w]*", "*[!g]", "*[g1]", "w*1*o*g", "*?", "?*", "a[_-]b*")
# ids: pcre
cases("pcre", "web", "web1", "eb1", ".*1", "web[12]", "web1$", "web1.example.org$", r"web1\.example\.org\Z", "(?i)WEB", "(?i)db-1$", "DB-1|a_b", "^web", "(web|DB).*1",
      r"\w+$", r"\w+-\d$", r"[^w]", "(?!web)", "(?!web1).*org$", "(?<!x)DB", r"(\w)(\w)", r".*(b).*@", r"(?P<x>[a-z])_(?P<y>b)@c", ".", ".{4}$", "w{1}e{1,}b{,2}1", "a_b@c",
      "[[a]_", "[]a]_", "[a&&w]", r"[\w.-]+$", r"[\d]", "web{1,2}", "x*", "x+", "(a|w)+", "a++_", "(?:a|D)", "(?#hint)a", "(?s)a.b", "(?x) a _ b # what", r"\x61_", r"\141_", r"\u0061_", r"\S+$", r"\D+$", "(?=.*@)", r"\Aa", r"\bweb", "DB-?1", "web(?=1)", "(w)(?:e)b(?(1)1|2)")
cases("pcre", "web(", "*", "[", "a**", r"\z", "(?P<1>a)", "a{3,2}", "(?<n>a)", "a(?i)b", r"\8", "web)", r"\xg", "+a", refused=True)
cases("pcre", "", refused=True, why="an empty target is nobody, never everybody")
# ids: list
cases("list", ["web1.example.org", "nobody"], ["DB-1"], [], "web1.example.org,DB-1", "web1.example.org, DB-1", "DB-1,", ",DB-1", "DB-1,,a_b@c", "web*", ["web*"], "db-1", "a_b@c")
# grains, glob
cases("grain", "os:Debian", "os:debian", "os:DEB*", "os:*", "OS:Debian", "os:deb", "os:?ebian", "os:[dr]*", "osrelease:12", "osrelease:22.*", "osmajorrelease:12", "osmajorrelease:1?", "roles:web", "roles:proxy",
      "roles:PROXY", "roles:db:master", "roles:db*", "roles:*", "roles:", "virtual:none", "virtual:None", "virtual:*", "systemd:version", "systemd:version:252", "systemd:version:25?", "systemd:*", "systemd:false", "systemd:False", "systemd:ver*",
      "ec2:tags:Name:web*", "ec2:tags:name:web*", "ec2:tags:env:prod", "ec2:tags", "ec2:*", "ec2:*:env:prod", "ec2:*:prod", "ec2:tags:*", "ec2:tags:*:prod", "ec2:none", "ec2:zone:eu-1a", "*:tags:env:test", "*:env", "*:zone", "*:Debian", "*:*", "*:os", "*:*:env", "*:*:prod", "*:*:*:prod",
      "disks:sda", "disks:sda:size:100", "disks:sdb:size:200", "disks:sdb:ssd:false", "disks:sdb:ssd", "disks:nvme0", "disks:0", "disks:0:sda", "disks:0:sda:size:100", "disks:1:sdb:size:200", "disks:2:nvme*", "disks:-1:nvme0", "disks:5:x", "disks:*", "disks:*:100", "disks:sd?", "disks:*:size", "disks:*sda*",
      "load:1.5", "load:1*", "tiny:1e-05", "huge:1e+16", "big:18446744073709551615", "neg:-3", "locale:žlu*", "locale:Žluťoučký", "path:c:\\program files", "path:c:*", "path:C", "url:https://example.org:8080/x", "url:https*", "url:https://*:8080/*", "star*:literal", "star[*]:literal", "*:literal", "*:starred",
      "multi\nline:a\nb", "multi\nline:a*", "trailing:value", "trailing:value*", "trailing:value?", "empty:", "empty:*", "empty:x", "emptylist:*", "emptymap:*", "emptymap:", "nested:list:a", "nested:list:7", "nested:list:c", "nested:list:c:d", "nested:list:c:e", "nested:list:c:e:f", "nested:list:c:1:e:f", "nested:list:0:a", "nested:list:0:1:b", "nested:list:['a', 'b']", "nested:list:*a*b*", "nested:map:a:b:c:deep", "nested:map:a:b:c:DEEP", "nested:map:a:b:c", "nested:map:*:c", "nested:map:*:b:c:deep", "nested:map:*:*:c:deep", "nested:*:deep", "nested:*:*:*:*:deep", "nested:list",
      "col:on:never", "quote:it's", 'quote:say "x"', "ports:80:http", "ports:443:https", "ports:80", "ports:1.5:half", "ports:true:yes", "ports:True:yes", "ports:None:nothing", "ports:none", "ports:8*", "lists:0", "lists:0:zero", "lists:0:10", "lists:1:20", "lists:+1:20", "lists: 1 :20", "lists:-1:0", "lists:10", "lists:-9:x", " os:Debian", "os :Debian", "'os':Debian", "os: Debian", "nokey:*", "nokey:", ":x", "::", "os::", "os:Debian:", ":os:Debian", "x:y:z:1", "x:y:z:2", "x:y:z:0:1", "x:y:z:1:2", "x:*:1", "x:*:z:1", "x:*:*:1", "num:12", "*:y:z:1", "*:y", "ipv4:10.*", "ipv6:::1", "ipv6:2001:db8::5", "ipv6:2001*", "os:fake", "os:0:Debian", "os:1:fake")
cases("grain", "os", "", refused=True)
cases("grain", "os|Debian", "roles|db:master", "ec2|tags|env|prod", "ec2|tags:env:prod", "url|https://example.org:8080/x", "*|tags|env|prod", "*|Debian", "nested|map|a|b|c|deep", "nested|map|a:b:c:deep", "nested|*|deep", "nested|*:deep", "col:on|never", "disks|sda|size|100", "nested|map|*:b:c:deep", delimiter="|")
cases("grain", "os|Debian", refused=True)
cases("grain", "os/Debian", "ec2/tags/env/prod", delimiter="/")
cases("grain", "osDebian", "s", delimiter="s")
# grains, pcre
cases("grain_pcre", "os:deb", "os:Deb.*n$", "os:^debian$", "os:ebian", "os:(debian|ubuntu)", "os:(?:debian|ubuntu)", "os:(?!debian)", "os:.*", "os:DEBIAN", r"osrelease:\d+$", r"osrelease:\d+\.\d+", r"osrelease:\D", r"os:\S+", "roles:(web|db)", "roles:prox", "roles:db:m", "systemd:ver", "systemd:version:2.2", "ec2:tags:name:web (one|two)", "ec2:tags:na", "*:tags:env:(prod|test)",
      "ec2:*:env:prod", "disks:sd[ab]", "disks:sda:size:1", "disks:{'sda'", "virtual:none", "load:1.", "path:c:.program", r"path:c:\\program", "url:https?://[a-z.]+:[0-9]+/", "trailing:value$", "trailing:val", "empty:$", "empty:.", "nokey:.*", "nested:map:a:b:c:de+p", "roles:^$", "emptylist:.*", "os:[[:alpha:]]", "ports:80:ht", "*:deb", "*:.*", "locale:ž", "ipv4:10\\.", "ipv6:2001:", "os:(?i)DEB", "os:{d}", "os:d{1}e", "os:d{,2}ebian$", "quote:it.s", "os:*", "ec2:*", "*:*", "ec2:tags:*")
cases("grain_pcre", "os:(debian", "os:[", "os", refused=True)
cases("grain_pcre", r"os:\w+\Z", "ec2:tags:(?P<x>na)", r"os:debian\Z", r"os:(?P<x>debian)", refused=True)
cases("grain_pcre", "os|deb", "ec2|tags|env|p.*d", "url|https:", delimiter="|")
# pillar
cases("pillar", "who:mi*", "who:MINI", "flag:true", "flag:True", "flag:false", "off:false", "num:5", "num:5*", "nil:none", "nil:*", "a:b:x", "a:b", "a:b:*", "a:c:d:deep", "a:c:d", "a:c", "a:*", "a:*:x", "a:*:d", "*:c:d:deep", "users:alice", "users:alice:uid:1000", "users:bob", "users:Bob", "users:bob:uid:1001", "users:*:uid:1000", "users:*:1001", "users:*:uid", "users:carol", "users:carol:*", "*:alice", "*:*:uid", "apps:name", "apps:name:one", "apps:name:two", "apps:1:name:two", "apps:port:443", "apps:*", "secret:s3cret*", "secret:S3cret[*]", "x:y", "a:c:d:e", "a:1:c:d:e", "a:c:d", "who:*i*")
cases("pillar", "who", refused=True)
cases("pillar", "a|c|d|deep", "users|alice|uid|1000", delimiter="|")
cases("pillar_pcre", "who:^m.n", "who:m", "who:(mini|maxi)$", "num:5$", "a:b:[xy]", "users:(alice|carol)", "users:alice:shell:/bin/.*sh", "flag:t|f", "*:c:d:dee", "a:c:d:[d-e]", "nil:n", "apps:name:(one|two)")
cases("pillar_pcre", "who:(", "who", refused=True)
cases("pillar_exact", "who:mini", "who:MINI", "who:mi*", "flag:true", "num:5", "num:50", "nil:none", "a:b:x", "a:b:*", "a:b", "a:*", "users:alice", "users:bob", "users:alice:uid:1000", "users:al*", "*:c:d:deep", "*:alice", "secret:s3cret*", "secret:s3cret", "apps:name:one", "users:*", "a:c:d:e")
cases("pillar_exact", "who", refused=True)
# addresses
cases("ipcidr", "10.1.2.3", "127.0.0.1", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0", "192.168.0.0/255.255.0.0", "192.168.0.0/0.0.255.255", "172.16.0.0/12", "8.8.8.8", "::1", "fe80::1", "FE80::1", "fe80:0:0:0:0:0:0:1", "2001:db8::/32", "2001:db8:1::/48", "fe80::/10", "::/0", "fe80::2%eth0", "fe80::2", "10.0.0.0/08", "1.2.3.0/24")
cases("ipcidr", "127.0.0.1/8", "10.0.0.0/33", "10.0.0", "10.0.0.256", "web1", "10.0.0.0/", "/8", "2001:db8::1/32", "10.0.0.0/255.0.255.0", "010.1.2.3", "", " 10.1.2.3", refused=True)
# compound
cases("compound", "web1.example.org", "web1.example.org or DB-1", "web* and not web1*", "web* not web1*", "* and not web*", "not web*", "not ( web* or DB* )", "not web* and not DB*", "web* and *2* or DB-1", "DB-1 or web* and *2*", "( DB-1 or web* ) and *2*", "DB-1 or ( web* and *2* )", "not DB-1 or DB-1", "not DB-1 and DB-1", "( ( DB-1 ) )", "( not DB-1 ) and web*", "web* or not DB-1", "web* and ( not web1* )",
      "G@os:Debian", "G@os:debian and web*", "G@os:Debian or G@os:RedHat", "P@os:(Debian|Ubuntu)", "P@os:(debian|ubuntu) and not web2*", "I@who:mini", "I@who:m* and not J@who:mi", "J@who:^m.x", "L@DB-1,web1.example.org", "L@DB-1 or L@a_b@c", "not L@DB-1", "S@10.0.0.0/8", "S@10.1.2.3 and G@os:Debian", "S@::1", "E@web[12]", "E@(web|DB)", "E@eb", "G|@os|Debian", "G|@ec2|tags|env|prod", "I|@users|alice|uid|1000", "P|@os|deb", "J/@a/c/d/dee", "G@@os@Debian", "Z@foo or DB-1", "Z@foo", "G@ or DB-1", "L@ or DB-1", "X@* or DB-1", "a_b@c", "a_b@* or DB-1",
      "G@roles:db:master", "G@virtual:none", "G@ec2:tags:env:prod or DB-1", "I@flag:True and web*", "I@a:c:d and *", "  web*   or   DB-1  ", "web*\tor\nDB-1", "G@os:Debian and S@10.0.0.0/8 and web* and not E@web2", "not G@os:*", "not I@who:*", "E@(?!web)", "L@web1.example.org,,DB-1", "* and not ( G@os:Debian or ( I@who:maxi and web2* ) )", "G@disks:sda:size:100", "andweb or DB-1", "or* or DB-1", "LX@DB-1 or a_b@c", "Not or DB-1", "web*)x or DB-1",
      ["web*", "or", "DB-1"], ["G@os:Debian"])
cases("compound", "", "and web*", "or web*", "web* and", "web* or", "not", "web* DB*", "web* and or DB*", "( web*", "web* )", ") web* (", "( )", "web* and ( or DB* )", "not not web*", "web* AND DB*", "web* & DB*", "R@web*", "R@web* or DB-1", "G@os and web*", "web* ( DB* )", "( web* ) ( DB* )", "S@nonsense", "web* and ( )", "E@(", "P@os:(", "and", "( and web* )", refused=True)
cases("compound", "(web* or DB-1)", "(web*", refused=True)
cases("compound", "T@dummy:x", "M@web1", refused=True)
cases("compound", "N@web", "N@names", "N@words", "N@listed", "N@onestring", "N@grain", "N@regex", "N@question", "N@nested", "N@deep", "N@both", "N@paren", "N@comma", "N@words or a_b@c", "not N@words", "N@grain and N@names", "N@nested and web*", "not N@nested", "* and not N@both", "( N@web ) and *2*", "*2* and ( N@web )", "N@words and not N@comma")
cases("compound", "N@web and *2*", ours=["web2.example.org"], why="a nodegroup counts as one term")
cases("compound", "not N@web", ours=["DB-1", "a_b@c"], why="a nodegroup counts as one term")
cases("compound", "N@missing", "web* and N@missing", "N@dangling", "N@twoglobs", "N@loop", refused=True)
cases("nodegroup", "web", "names", "words", "listed", "onestring", "grain", "regex", "question", "nested", "deep", "both", "paren", "comma")
cases("nodegroup", "missing", "dangling", "twoglobs", "loop", "web or DB-1", refused=True)
cases("compound_pillar_exact", "I@who:mini", "I@who:mi*", "J@who:mini", "J@who:m.*", "web* and not I@flag:true", "I@users:alice or DB-1", "G@os:Deb* and I@num:5", "J|@users|alice|uid|1000", "N@grain and I@nil:none")
cases("range", "%web", refused=True)


def opts_of(minion):
    opts = salt.config.DEFAULT_MINION_OPTS.copy()
    opts.update(id=minion["id"], grains=minion["grains"], pillar=minion["pillar"], nodegroups=NODEGROUPS, extension_modules="", __role="minion")
    return opts


# One loader per minion: an empty pillar falls back to the one the loader was made with.
LOADED = {m["id"]: (opts_of(m), salt.loader.matchers(opts_of(m))) for m in MINIONS}


def published(kind, target):
    """What the stock client makes of a target before it is sent: nodegroups become compound text."""
    client = types.SimpleNamespace(opts={"nodegroups": NODEGROUPS, "ext_job_cache": "", "order_masters": False}, key="", salt_user="")
    client._resolve_nodegroup = types.MethodType(salt.client.LocalClient._resolve_nodegroup, client)
    load = salt.client.LocalClient._prep_pub(client, target, "test.ping", [], kind, "", "", 5)
    return load["tgt_type"], load["tgt"]


def on_minion(kind, target, delimiter, minion):
    """As the minion decides it, delimiter rule included."""
    opts, matchers = LOADED[minion["id"]]
    try:
        kind, target = published(kind, target)
        match = matchers[f"{kind}_match.match"]
        if kind in ("grain", "grain_pcre", "pillar"):
            return bool(match(target, delimiter=delimiter, opts=opts, minion_id=minion["id"]))
        return bool(match(target, opts=opts, minion_id=minion["id"]))
    except Exception:
        return False


class Cache:
    def list(self, bank):
        return [m["id"] for m in MINIONS]

    def fetch(self, bank, key):
        return next(m[bank] for m in MINIONS if m["id"] == key)


def on_master(target):
    """compound_pillar_exact exists on the master only."""
    ck = salt.utils.minions.CkMinions.__new__(salt.utils.minions.CkMinions)
    ck.opts = {"minion_data_cache": True, "nodegroups": NODEGROUPS}
    ck.cache = Cache()
    ck.key = object()
    ck._pki_minions = lambda: {m["id"] for m in MINIONS}
    ck._augment_with_resource_grains = lambda *args, **kwargs: None
    return ck._check_compound_minions(target, ":", True, pillar_exact=True)["minions"]


def portable(value):
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return {key: portable(item) for key, item in value.items()}
        return {"$map": [[key, portable(item)] for key, item in value.items()]}
    if isinstance(value, list):
        return [portable(item) for item in value]
    return value


def main():
    answers = []
    for kind, target, options in CASES:
        delimiter = options.get("delimiter", ":")
        if kind == "compound_pillar_exact":
            found = set(on_master(target))
            matched = [m["id"] for m in MINIONS if m["id"] in found]
        else:
            matched = [m["id"] for m in MINIONS if on_minion(kind, target, delimiter, m)]
        answers.append({"tgt_type": kind, "tgt": target, **options, "matched": matched})
    lines = ",\n".join("  " + json.dumps(answer, ensure_ascii=False) for answer in answers)
    minions = ",\n".join("  " + json.dumps(portable(m), ensure_ascii=False) for m in MINIONS)
    out = pathlib.Path(__file__).with_suffix(".json")
    text = (
        '{\n"salt": ' + json.dumps(salt.version.__version__) + ',\n"minions": [\n' + minions + '\n],\n"nodegroups": '
        + json.dumps(NODEGROUPS) + ',\n"cases": [\n' + lines + "\n]\n}\n"
    )
    out.write_text(text, encoding="utf-8")
    print(f"{len(answers)} cases")


if __name__ == "__main__":
    main()
