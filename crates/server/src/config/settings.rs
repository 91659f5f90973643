//! The table of every key: its name, what it takes, its default, what it does. The reference page is made from it.

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// yes or no
    Flag,
    /// a whole number
    Number,
    /// text
    Text,
    /// a path
    Path,
    /// a map of environments to lists of directories
    Roots,
    /// a map
    Map,
    /// a list
    List,
}

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name, Salt's where the meaning is Salt's
    pub key: &'static str,
    /// What it takes
    pub kind: Kind,
    /// Its default, as one would write it
    pub default: &'static str,
    /// What it does
    pub help: &'static str,
}

const fn setting(key: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Setting {
    Setting { key, kind, default, help }
}

/// Every key, in the order of the reference page.
pub const SETTINGS: &[Setting] = &[
    setting(
        "data_dir",
        Kind::Path,
        "/var/lib/saltern",
        "Where the database, the server's keys and the control socket live.",
    ),
    setting("database", Kind::Text, "DATA_DIR/saltern.db", "A SQLite file, or postgres://USER:PASSWORD@HOST/NAME."),
    setting("interface", Kind::Text, "0.0.0.0", "Address that both ports listen on."),
    setting("publish_port", Kind::Number, "4505", "Port that minions subscribe to."),
    setting("ret_port", Kind::Number, "4506", "Port that minions send requests to."),
    setting("id", Kind::Text, "HOSTNAME_master", "Name of this server, as `master_id` in jobs."),
    setting("keysize", Kind::Number, "2048", "Bits of the server's RSA key when it is first made."),
    setting("auto_accept", Kind::Flag, "no", "Accept every new key at once. For trials only."),
    setting("open_mode", Kind::Flag, "no", "Accept and overwrite any key. Never outside a laboratory."),
    setting(
        "autosign_file",
        Kind::Path,
        "none",
        "File of ids (glob or regular expression per line) that are accepted at once.",
    ),
    setting(
        "autoreject_file",
        Kind::Path,
        "none",
        "File of ids (glob or regular expression per line) that are rejected at once.",
    ),
    setting(
        "autosign_grains_dir",
        Kind::Path,
        "none",
        "Directory of files named like a grain, each with the values that are accepted at once.",
    ),
    setting("max_minions", Kind::Number, "0", "Most minions that may be accepted; 0 is no limit."),
    setting(
        "max_pending_keys",
        Kind::Number,
        "10000",
        "Most keys that may wait for a decision; later ones are told to come back.",
    ),
    setting(
        "denied_waits",
        Kind::Flag,
        "yes",
        "A minion with another key than the accepted one waits; no: it is told to stop, as by salt-master.",
    ),
    setting(
        "minimum_auth_version",
        Kind::Number,
        "3",
        "Oldest protocol version accepted; 2 admits minions before 3006.12 and 3007.4, which can impersonate each other.",
    ),
    setting(
        "request_server_ttl",
        Kind::Number,
        "300",
        "Seconds by which a request's own time stamp may differ from the server's clock; 0 turns the check off.",
    ),
    setting(
        "publish_session",
        Kind::Number,
        "86400",
        "Seconds after which the shared and the session keys are renewed.",
    ),
    setting("file_roots", Kind::Roots, "base: [/srv/salt]", "Directories served to minions, per environment."),
    setting(
        "fileserver_followsymlinks",
        Kind::Flag,
        "yes",
        "Follow links inside the roots. Links that leave them are never followed.",
    ),
    setting("fileserver_ignoresymlinks", Kind::Flag, "no", "Leave links out altogether."),
    setting("file_ignore_regex", Kind::List, "[]", "Files whose path matches one of these are not served."),
    setting("file_ignore_glob", Kind::List, "[]", "Files whose path matches one of these are not served."),
    setting("pillar_roots", Kind::Roots, "base: [/srv/pillar]", "Directories of pillar, per environment."),
    setting(
        "pillar_source_merging_strategy",
        Kind::Text,
        "smart",
        "smart, recurse, aggregate, overwrite, list or none.",
    ),
    setting("pillar_merge_lists", Kind::Flag, "no", "Concatenate lists of the same name instead of replacing them."),
    setting(
        "pillarenv_from_saltenv",
        Kind::Flag,
        "no",
        "Take the pillar environment from saltenv where none is given.",
    ),
    setting(
        "pillar_safe_render_error",
        Kind::Flag,
        "yes",
        "Tell minions only that rendering failed; the particulars go to the log.",
    ),
    setting("top_file_merging_strategy", Kind::Text, "merge", "merge, same or merge_all."),
    setting("env_order", Kind::List, "[]", "Order of environments when top files are merged."),
    setting("default_top", Kind::Text, "base", "Environment whose top file is taken with the strategy `same`."),
    setting("state_top", Kind::Text, "top.sls", "Name of the top file."),
    setting("state_events", Kind::Flag, "yes", "Minions report each state as it finishes."),
    setting("failhard", Kind::Flag, "no", "State runs stop at the first failure."),
    setting("state_auto_order", Kind::Flag, "yes", "States run in the order in which they are written."),
    setting("state_aggregate", Kind::Flag, "no", "Let minions aggregate states."),
    setting("jinja_trim_blocks", Kind::Flag, "no", "Given to minions for their templates."),
    setting("jinja_lstrip_blocks", Kind::Flag, "no", "Given to minions for their templates."),
    setting("nodegroups", Kind::Map, "{}", "Named groups of minions: name to compound expression."),
    setting(
        "peer",
        Kind::Map,
        "{}",
        "Which minions may publish which functions to others: minion pattern to list of function patterns.",
    ),
    setting("job_ack", Kind::Flag, "yes", "Jobs ask minions to acknowledge before they start executing."),
    setting(
        "auth_events",
        Kind::Flag,
        "yes",
        "Put sign-ins into the event log: every new decision, and each accepted minion once a minute at most.",
    ),
    setting("presence_events", Kind::Flag, "no", "Put who is present into the event log, once a minute."),
    setting("minion_data_cache_events", Kind::Flag, "yes", "Put every refresh of a minion's data into the event log."),
    setting(
        "max_return_size",
        Kind::Number,
        "16777216",
        "Bytes of a return that are kept; more is cut, with a marker.",
    ),
    setting("max_connections", Kind::Number, "40000", "Connections per port; more are refused."),
    setting(
        "job_deadline",
        Kind::Number,
        "86400",
        "Seconds after its due time in which an action ends, whatever happens; actions may say otherwise.",
    ),
    setting(
        "ack_timeout",
        Kind::Number,
        "5",
        "Seconds that an acknowledgement is waited for before a job is sent again.",
    ),
    setting(
        "max_running",
        Kind::Number,
        "10000",
        "Most runs in progress at once; as many again for those somebody waits for. 0: no limit.",
    ),
    setting("start_rate", Kind::Number, "0", "Most runs started per second. 0: no limit."),
    setting("max_queued", Kind::Number, "1000000", "Most runs that may wait; what would be above is refused."),
    setting(
        "blackout",
        Kind::List,
        "[]",
        "Minions (glob patterns) on which nothing that changes them is started; it waits until this is lifted.",
    ),
    setting(
        "keep_jobs_seconds",
        Kind::Number,
        "2592000",
        "Seconds that finished actions, their returns and dead letters are kept. 0: for ever.",
    ),
    setting("keep_actions", Kind::Number, "1000000", "Most finished actions kept. 0: any number."),
    setting("keep_events_seconds", Kind::Number, "2592000", "Seconds that events are kept. 0: for ever."),
    setting("keep_events", Kind::Number, "10000000", "Most events kept. 0: any number."),
    setting(
        "http",
        Kind::Text,
        "127.0.0.1:8000",
        "ADDRESS:PORT of the HTTP API (salt-api's URLs, `/api/v1`, the console), or `off`.",
    ),
    setting("tls_cert", Kind::Path, "none", "Certificate chain (PEM) for HTTPS; read again when the file changes."),
    setting("tls_key", Kind::Path, "none", "Its private key (PEM)."),
    setting("http_plain", Kind::Flag, "no", "Allow HTTP without TLS on other addresses than loopback."),
    setting(
        "cors_origins",
        Kind::List,
        "[]",
        "Other sites whose pages may use the API, e.g. `https://gui.example.org`.",
    ),
    setting("http_max_body", Kind::Number, "33554432", "Largest body of a request, in bytes."),
    setting("http_max_connections", Kind::Number, "4096", "HTTP connections at once; more wait."),
    setting("http_timeout", Kind::Number, "600", "Seconds in which a request has to be answered; streams go on."),
    setting(
        "rest_cherrypy",
        Kind::Map,
        "none",
        "Salt's own settings of salt-api: `port`, `host`, `ssl_crt`, `ssl_key`, `disable_ssl`, `app`, `static` and `webhook_disable_auth` count, unless `http` or `tls_cert` say otherwise.",
    ),
    setting(
        "netapi_enable_clients",
        Kind::List,
        "all",
        "The clients of salt-api that may be used: local, local_async, runner …",
    ),
    setting(
        "external_auth",
        Kind::Map,
        "none",
        "Salt's rules: per way to log in (pam, ldap, file, sharedsecret) and user the functions and minions he may use.",
    ),
    setting("token_expire", Kind::Number, "43200", "Seconds that a log-in lasts."),
    setting(
        "token_expire_user_override",
        Kind::Flag,
        "no",
        "Whether a client may ask for another time when it logs in.",
    ),
    setting("sharedsecret", Kind::Text, "none", "The password of everybody who logs in by `sharedsecret`."),
    setting("auth.pam.service", Kind::Text, "login", "The PAM service that checks passwords."),
    setting("auth.pam.confdir", Kind::Path, "the system's", "Another folder of PAM services."),
    setting("auth.ldap.server", Kind::Text, "none", "Host of the LDAP server."),
    setting("auth.ldap.port", Kind::Text, "none", "Its port; 636 with `auth.ldap.tls`."),
    setting("auth.ldap.uri", Kind::Text, "none", "Both in one: `ldap://HOST:PORT` or `ldaps://HOST:PORT`."),
    setting("auth.ldap.tls", Kind::Text, "none", "LDAP over TLS from the start."),
    setting("auth.ldap.starttls", Kind::Text, "none", "Switch to TLS after connecting."),
    setting("auth.ldap.no_verify", Kind::Text, "none", "Do not check the LDAP server's certificate."),
    setting("auth.ldap.basedn", Kind::Text, "none", "Where people are searched."),
    setting(
        "auth.ldap.binddn",
        Kind::Text,
        "none",
        "Who searches; or, with `{{ username }}` in it and without a filter, who logs in.",
    ),
    setting("auth.ldap.bindpw", Kind::Text, "none", "The password of `binddn`."),
    setting("auth.ldap.filter", Kind::Text, "none", "How a person is found, e.g. `uid={{ username }}`."),
    setting("auth.ldap.scope", Kind::Text, "none", "0, 1 or 2: how deep is searched."),
    setting("auth.ldap.groupou", Kind::Text, "none", "Where groups are, below `basedn`."),
    setting("auth.ldap.groupclass", Kind::Text, "none", "The class of groups."),
    setting("auth.ldap.accountattributename", Kind::Text, "none", "The attribute of a group that names its members."),
    setting("auth.ldap.persontype", Kind::Text, "none", "The class of people."),
    setting("auth.ldap.anonymous", Kind::Text, "none", "Search without `binddn`."),
    setting("auth.ldap.activedirectory", Kind::Text, "none", "The server is an Active Directory."),
    setting("webhook_timeout", Kind::Number, "10", "Seconds that the receiver of a webhook has to answer."),
    setting("webhook_tries", Kind::Number, "12", "How often an event is sent to a webhook before it is put aside."),
    setting(
        "calendar_near_urls",
        Kind::Flag,
        "false",
        "Whether the URL of a maintenance calendar may lead to this machine itself, or to an address that holds on its own network link only.",
    ),
    setting("timeout", Kind::Number, "10", "Seconds that a minion that says nothing is waited for."),
    setting("gather_job_timeout", Kind::Number, "5", "Seconds that a minion has to say whether it still runs a job."),
];

/// Keys of a Salt `master` file that we know and do not need: said once at the start, never an error.
pub(super) const IGNORED: &[&str] = &[
    "user",
    "pidfile",
    "pki_dir",
    "cachedir",
    "sock_dir",
    "root_dir",
    "conf_file",
    "log_file",
    "key_logfile",
    "log_level",
    "log_level_logfile",
    "log_datefmt",
    "log_datefmt_logfile",
    "log_fmt_console",
    "log_fmt_logfile",
    "log_granular_levels",
    "worker_threads",
    "max_open_files",
    "keep_jobs",
    "job_cache",
    "minion_data_cache",
    "ext_job_cache",
    "event_return",
    "event_return_queue",
    "ping_on_rotate",
    "loop_interval",
    "zmq_filtering",
    "zmq_backlog",
    "pub_hwm",
    "salt_event_pub_hwm",
    "event_publisher_pub_hwm",
    "ipc_mode",
    "ipc_write_buffer",
    "tcp_master_pub_port",
    "tcp_master_pull_port",
    "tcp_keepalive",
    "hash_type",
    "sign_pub_messages",
    "con_cache",
    "enable_gpu_grains",
    "show_jid",
    "show_timeout",
    "output",
    "color",
    "strip_colors",
    "state_verbose",
    "test_providers_target",
    "state_compress_ids",
    "state_output_pct",
    "cluster_peers",
    "cluster_id",
    "reactor",
    "state_output",
    "cli_summary",
    "preserve_minion_cache",
    "verify_env",
    "permissive_pki_access",
    "rotate_aes_key",
    "master_stats",
    "file_buffer_size",
    "file_recv",
    "file_recv_max_size",
    "fileserver_backend",
    "fileserver_events",
    "publisher_acl",
    "rest_tornado",
    "default_include",
    "renderer",
    "yaml_utf8",
    "runner_dirs",
    "interface_ipv6",
    "ipv6",
    "master_sign_pubkey",
    "max_event_size",
    "publish_signing_algorithm",
    "ssh_minion_opts",
    "roster",
    "syndic_master",
    "order_masters",
    "winrepo_dir",
    "winrepo_dir_ng",
    "jinja_env",
    "jinja_sls_env",
];

/// The reference page of the configuration, in Markdown.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Configuration\n\nA YAML file given with `-c FILE`, by default `/etc/saltern/master` if it is there. Keys are Salt's own\n\
         wherever the meaning is Salt's, so a site's `master` file can be given as it is. Every key is also a variable\n\
         `SALTERN_<KEY>` (its value read as YAML), and the common ones are flags of `saltern serve`. Flags win over variables,\n\
         variables over the file.\n\n<!-- Made from crates/server/src/config/settings.rs by `UPDATE=1 cargo test -p saltern-server --test reference`. -->\n\n\
         | key | takes | default | what it does |\n|---|---|---|---|\n",
    );
    for Setting { key, kind, default, help } in SETTINGS {
        let kind = match kind {
            Kind::Flag => "yes or no",
            Kind::Number => "number",
            Kind::Text => "text",
            Kind::Path => "path",
            Kind::Roots => "map of lists",
            Kind::Map => "map",
            Kind::List => "list",
        };
        page.push_str(&format!("| `{key}` | {kind} | `{default}` | {help} |\n"));
    }
    page.push_str("\n## Salt keys that are ignored\n\nThey may stand in the file; the server names those it found once, when it starts.\n\n");
    page.push_str(&IGNORED.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", "));
    page.push('\n');
    page
}
