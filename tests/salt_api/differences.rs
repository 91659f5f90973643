//! Where the answers here are deliberately not what the captures say, and captures that say nothing about this server.

use crate::checks;
use saltern_testkit::http::Reply;

/// What is answered here instead.
#[derive(Clone, Copy)]
pub(crate) enum Ours {
    /// An error with this status and a reason of our own
    Status(u16),
    /// This status and JSON
    Says(u16, &'static str),
    /// What another capture says
    Like(&'static str),
    /// The captured answer in its form: its values depend on the machine and on what happened before
    Form,
    /// The captured answer, but for these places
    Apart(&'static [&'static str]),
    /// What a function finds right
    Checked(fn(&Reply) -> Result<(), String>),
}

/// What is different for a capture, and why.
pub(crate) fn of(case: &str) -> Option<Ours> {
    DIFFERENCES.iter().find(|(name, _, _)| *name == case).map(|(_, ours, _)| *ours)
}

/// Whether a capture says nothing about this server.
pub(crate) fn is_left_out(case: &str) -> bool {
    NOT_APPLICABLE.iter().any(|(name, _)| *name == case)
}

/// Captures that were made with other settings; they are asked of [`crate::stand::Stand::otherwise`].
pub(crate) const OTHERWISE: [&str; 19] = [
    "acl-named-plus-star",
    "app-get",
    "app-get-subpath",
    "hook-disable-auth",
    "login-accept-html",
    "login-named-plus-star",
    "login-with-old-token-header",
    "login-with-unknown-token-header",
    "netapi_enable_clients-disabled",
    "netapi_enable_clients-keys",
    "netapi_enable_clients-local-ok",
    "options-app",
    "options-no-accept-appconfigured",
    "post-accept-axios-appconfigured",
    "root-get-accept-html-appconfigured",
    "root-get-no-accept",
    "session-after-api-restart",
    "static-404",
    "static-get",
];

use Ours::{Apart, Checked, Form, Like, Says, Status};

const PING: &str = r#"{"return":[{"web1":true}]}"#;
const BOTH: &str = r#"{"return":[{"web1":true,"db1":true}]}"#;
const NOT_ORCHESTRATED: &str =
    r#"{"return":[{"data":{"host1_master":["<text>"]},"outputter":"highstate","retcode":1}]}"#;
const RUNNER_RESULT: &[&str] =
    &["return.0.Result.host1_master.return.return", "return.0.Result.host1_master.return.success"];

const NEWER_GRAINS: &[&str] =
    &["return.0.web1.fibre_channel_host", "return.0.web1.package", "return.0.web1.ca_truststore"];
const ACCEPTED: &[&str] = &["return.0.data.return.minions"];
const KEYS: &str = r#"{"return":[{"tag":"salt/wheel/20261115185902757082","data":{"fun":"wheel.key.list_all",
    "jid":"20261115185902757082","tag":"salt/wheel/20261115185902757082","user":"admin","_stamp":"2026-11-15T18:59:02.757082",
    "return":{"minions":"<any>","minions_pre":"<any>","minions_rejected":"<any>","minions_denied":"<any>","local":"<any>"},
    "success":true}}]}"#;
const PUBLISHED: &[&str] = &["return.0.web1.kwargs.__pub_arg", "return.0.web1.ret.kwargs.__pub_arg"];
const VERSIONS: &str = r#"{"return":[{"web1":{"Salt Version":{"Salt":"3006.28"},"Python Version":{"Python":"<text>"},
    "Dependency Versions":"<any>","System Versions":"<any>"}}]}"#;

/// Capture, what is answered here, and why.
pub(crate) const DIFFERENCES: &[(&str, Ours, &str)] = &[
    // Requests that the real server dies of are mistakes of the caller.
    ("login-bad-yaml", Status(400), "a body that is no YAML is the caller's mistake"),
    ("login-empty-body", Status(400), "no credentials is the caller's mistake"),
    ("login-empty-list", Status(400), "no credentials is the caller's mistake"),
    ("login-json-string", Status(400), "no credentials is the caller's mistake"),
    ("low-missing-fun", Status(400), "a call without function is the caller's mistake"),
    ("low-missing-tgt", Status(400), "a call without target is the caller's mistake"),
    ("local_async-missing-tgt", Status(400), "a call without target is the caller's mistake"),
    ("v3006.9--local-missing-fun", Status(400), "a call without function is the caller's mistake"),
    ("v3006.9--local-missing-tgt", Status(400), "a call without target is the caller's mistake"),
    ("post-json-list-of-strings", Status(400), "low data is objects"),
    ("local-nodegroup-unknown", Status(400), "there is no such nodegroup"),
    ("v3006.9--local-nodegroup-unknown", Status(400), "there is no such nodegroup"),
    ("v3006.9--local_batch-bad", Status(400), "as 3008 does"),
    (
        "local-multi-function-full",
        Checked(checks::several_functions),
        "`a,b` means two functions on Salt's own command line, and each has to be allowed",
    ),
    ("runner-unknown", Status(400), "there is no such function"),
    ("runner-raises", Status(400), "`salt.cmd` runs modules of a salt-master, and there is none"),
    ("runner-unknown-full_return", Status(400), "there is no such function"),
    ("runner-async-unknown", Status(400), "there is no such function"),
    ("v3006.9--runner-unknown", Status(400), "there is no such function"),
    ("acl-ops-runner-bad-syntax", Status(400), "a function has a module"),
    ("low-client-destroy", Status(400), "it was an accident that this was a client at all"),
    ("url-unknown", Checked(checks::nothing_there), "what is at no URL belongs to no dialect"),
    ("url-unknown-with-token", Checked(checks::nothing_there), "what is at no URL belongs to no dialect"),
    ("url-root-extra-path", Checked(checks::nothing_there), "what is at no URL belongs to no dialect"),
    ("minions-get-extra", Checked(checks::nothing_there), "what is at no URL belongs to no dialect"),
    ("noapp-app-default", Status(404), "the reason is in other words"),
    ("noapp-static", Status(404), "the reason is in other words"),
    ("static-404", Status(404), "the reason is in other words"),
    ("method-get-logout", Status(405), "logging out is done by POST"),
    ("ws-plain-get", Status(400), "a websocket begins with an upgrade"),
    ("keys-get-noauth", Status(401), "the reason is told as everywhere else"),
    ("keys-post-noauth", Status(401), "who he is comes first"),
    ("keys-post-badpw", Status(401), "who he is comes first"),
    ("keys-post-existing", Status(409), "an archive of empty files helps nobody"),
    ("keys-post-force", Checked(checks::archive), "what a form says is read"),
    // One token is good everywhere.
    ("token-post-limited-user", Checked(checks::token), "who can log in gets a token"),
    ("run-session-token-in-body", Says(200, PING), "a token is good everywhere"),
    ("post-eauth-token-in-header", Says(200, PING), "a token is good everywhere"),
    ("session-after-api-restart", Says(200, r#"{"return":[{}]}"#), "a restart logs nobody out"),
    ("login-with-old-token-header", Checked(checks::new_token), "a login gives a new token"),
    // Tokens end up in logs when they are part of a URL.
    ("events-query-token", Status(400), "a token is no part of a URL"),
    ("events-query-salt_token", Status(400), "a token is no part of a URL"),
    ("v3006.9--events-query-token", Status(400), "a token is no part of a URL"),
    ("v3006.9--events-query-token-eauth", Status(400), "a token is no part of a URL"),
    ("v3006.9--events-query-salt_token", Status(400), "a token is no part of a URL"),
    ("v3006.9--events-query-salt_token-session", Status(400), "a token is no part of a URL"),
    // Bodies and Accept.
    ("post-chunked-body", Says(200, PING), "a body in chunks is a body"),
    ("post-form-full_return-false", Says(200, r#"{"return":[{"db1":true}]}"#), "false is false in a form, too"),
    ("post-accept-axios-appconfigured", Says(200, PING), "the app's page is for browsers that ask for a page"),
    ("login-accept-html", Status(406), "the app's page is for GET"),
    ("root-get-no-accept", Like("noapp-root-no-accept"), "who does not ask for a page gets none"),
    // Preflight works on all URLs.
    ("options-app", Checked(checks::preflight), "preflight works everywhere"),
    ("options-events", Checked(checks::preflight), "preflight works everywhere"),
    ("options-hook", Checked(checks::preflight), "preflight works everywhere"),
    ("options-login", Checked(checks::preflight), "preflight works everywhere"),
    ("options-no-accept-appconfigured", Checked(checks::preflight), "preflight works everywhere"),
    ("noapp-options-no-accept", Checked(checks::preflight), "preflight works everywhere"),
    ("options-preflight", Checked(checks::preflight), "preflight works everywhere"),
    ("options-preflight-put", Checked(checks::preflight), "preflight works everywhere"),
    ("options-run", Checked(checks::preflight), "preflight works everywhere"),
    ("options-stats", Checked(checks::preflight), "preflight works everywhere"),
    ("options-token", Checked(checks::preflight), "preflight works everywhere"),
    ("v3006.9--options-minions", Checked(checks::preflight), "preflight works everywhere"),
    ("v3006.9--options-preflight", Checked(checks::preflight), "preflight works everywhere"),
    ("options-plain-minions", Checked(checks::no_error), "asking what is allowed is no error"),
    // Arguments.
    ("post-form", Apart(PUBLISHED), "keyword arguments are told apart here, not by the minion"),
    ("local-json-arg-kv", Apart(PUBLISHED), "keyword arguments are told apart here, not by the minion"),
    ("local-args-kwarg", Apart(PUBLISHED), "keyword arguments are told apart here, not by the minion"),
    // Targets.
    ("local-ipcidr", Says(200, BOTH), "whose addresses nobody knows is not meant"),
    ("local-ping-expr_form", Says(200, BOTH), "the old name of tgt_type counts where the new one is absent"),
    ("local-list-tgt-default-type", Says(200, BOTH), "a list is a list"),
    ("local-comma-glob", Says(200, r#"{"return":[{}]}"#), "no id is called so, and nobody waits for it"),
    ("local-jid-bad", Status(400), "a job id has twenty digits"),
    ("local-jid-given", Status(400), "job ids are made here"),
    ("local-subset-as-arg", Says(200, r#"{"return":[{"<minion>":true}]}"#), "either of them"),
    ("local_subset-1", Says(200, r#"{"return":[{"<minion>":true}]}"#), "either of them"),
    ("local_subset-sub", Says(200, r#"{"return":[{"<minion>":true}]}"#), "either of them"),
    // Batches tell everything.
    (
        "local_batch-full_return",
        Says(
            200,
            r#"{"return":[{"web1":{"ret":true,"retcode":3,"jid":"20261115185324296284"}},{"db1":{"ret":true,"retcode":3,"jid":"20261115185324296284"}}]}"#,
        ),
        "full_return counts in batches, too",
    ),
    (
        "v3006.9--local_batch-full_return",
        Says(200, r#"{"return":[{"web1":{"ret":true,"retcode":0,"jid":"20261115185324296284"}}]}"#),
        "full_return counts in batches, too",
    ),
    ("local_batch-ghost", Says(200, r#"{"return":[{"web1":true},{"ghost1":false}]}"#), "who does not answer is named"),
    (
        "v3006.9--local_batch",
        Says(200, r#"{"return":[{"web1":true},{"db1":true},{"ghost1":false}]}"#),
        "who does not answer is named",
    ),
    // Permissions.
    ("acl-tester-compound-mixed", Status(401), "every function of a compound command has to be permitted"),
    ("v3006.9--acl-compound-mixed", Status(401), "every function of a compound command has to be permitted"),
    ("acl-events-noperm-user", Checked(checks::statistics), "the counters are our own"),
    ("stats-get", Checked(checks::statistics), "the counters are our own"),
    ("v3006.9--stats-get", Checked(checks::statistics), "the counters are our own"),
    // Jobs.
    ("runner-jobs.exit_success-failed", Says(200, r#"{"return":[{"web1":false}]}"#), "a failed state is no success"),
    (
        "runner-jobs.list_jobs-search_function-poisoned",
        Like("runner-jobs.list_jobs-search_function"),
        "a compound command is searched like any other",
    ),
    ("runner-jobs.last_run", Checked(checks::last_job), "nobody asked for a job that looks for a job"),
    (
        "runner-jobs.list_job-of-failed-runner",
        Apart(&["return.0.Result.host1_master.return.success"]),
        "what could not be called is no success",
    ),
    ("runner-jobs.list_jobs_filter", Form, "other jobs came before"),
    ("v3006.9--runner-jobs.list_jobs-multi", Form, "other jobs came before"),
    ("runner-jobs.list_job-of-orchestrate", Apart(RUNNER_RESULT), "orchestration is not offered yet"),
    (
        "runner-jobs.lookup_jid-of-orchestrate",
        Apart(&["return.0.host1_master.return", "return.0.host1_master.success"]),
        "orchestration is not offered yet",
    ),
    // Runners.
    (
        "runner-manage.status-tgt",
        Says(200, r#"{"return":[{"up":["web1"],"down":["ghost1"]}]}"#),
        "nobody waits for a minion that is not connected",
    ),
    (
        "runner-manage.versions",
        Says(
            200,
            r#"{"return":[{"Minion requires update":{"db1":"3006.28","web1":"3006.28"},"Minion offline":{"ghost1":false},"Master":"3008.3"}]}"#,
        ),
        "the minions are older here",
    ),
    ("v3006.9--runner-manage.versions", Like("runner-manage.versions"), "the server is newer here"),
    ("runner-cache.list-kwarg", Form, "what is in a bank is the server's own affair"),
    ("runner-cache.list-minions", Form, "what is in a bank is the server's own affair"),
    ("runner-state.orchestrate", Says(200, NOT_ORCHESTRATED), "orchestration is not offered yet"),
    ("runner-state.orchestrate-mods", Says(200, NOT_ORCHESTRATED), "orchestration is not offered yet"),
    ("runner-state.orchestrate-failing", Says(200, NOT_ORCHESTRATED), "orchestration is not offered yet"),
    ("runner-state.orchestrate-missing", Says(200, NOT_ORCHESTRATED), "orchestration is not offered yet"),
    ("v3006.9--runner-orchestrate", Says(200, NOT_ORCHESTRATED), "orchestration is not offered yet"),
    (
        "runner-state.orchestrate-pillar",
        Apart(&["return.0.data.return", "return.0.data.success"]),
        "orchestration is not offered yet",
    ),
    (
        "runner-state.orchestrate_show_sls-one",
        Says(200, r#"{"return":[{"host1_master":{}}]}"#),
        "orchestration is not offered yet",
    ),
    (
        "runner-state.orchestrate_show_sls-star",
        Says(200, r#"{"return":[{"host1_master":{}}]}"#),
        "orchestration is not offered yet",
    ),
    (
        "runner-state.orchestrate_single",
        Says(200, r#"{"return":[{"host1_master":["<text>"]}]}"#),
        "orchestration is not offered yet",
    ),
    // Wheel.
    ("wheel-full_return", Says(200, KEYS), "what means nothing for wheel functions is no mistake"),
    ("wheel-timeout", Says(200, KEYS), "what means nothing for wheel functions is no mistake"),
    ("v3006.9--wheel-full_return", Says(200, KEYS), "what means nothing for wheel functions is no mistake"),
    ("v3006.9--wheel-timeout", Says(200, KEYS), "what means nothing for wheel functions is no mistake"),
    ("wheel-key.list-acc", Apart(ACCEPTED), "den1 has an accepted key beside the denied one"),
    ("wheel-key.list-accepted", Apart(ACCEPTED), "den1 has an accepted key beside the denied one"),
    ("wheel-arg-positional", Like("wheel-key.finger-one"), "arguments may stand in arg and kwarg, too"),
    ("wheel-kwarg", Like("wheel-key.finger-one"), "arguments may stand in arg and kwarg, too"),
    ("v3006.9--wheel-arg-positional", Like("wheel-key.finger-one"), "arguments may stand in arg and kwarg, too"),
    ("v3006.9--wheel-kwarg", Like("wheel-key.finger-one"), "arguments may stand in arg and kwarg, too"),
    ("wheel-config.values", Checked(checks::configuration), "secrets are not told"),
    // What depends on the minions' version and machine.
    ("minion-grains.items", Apart(NEWER_GRAINS), "3006 minions have fewer grains"),
    ("minion-test.versions_information", Says(200, VERSIONS), "the capture has the names only"),
    ("minion-pillar.items", Like("v3006.9--minion-pillar.items"), "3006 minions mask nothing"),
    ("minion-pillar.get", Says(200, r#"{"return":[{"web1":1}]}"#), "3006 minions mask nothing"),
    (
        "minion-pillar.obfuscate",
        Says(
            200,
            r#"{"return":[{"web1":{"greet":"<str>","nested":{"a":"<int>","b":["<str>","<str>"]},"secret_password":"<str>"}}]}"#,
        ),
        "3006 minions mask nothing",
    ),
    ("minion-pillar.raw", Apart(&["return.0.web1.schedule"]), "only where a schedule was set"),
    (
        "minion-saltutil.sync_all",
        Apart(&["return.0.web1.resources", "return.0.web1.modules"]),
        "3006 minions have no resources; the server brings a module of its own, for chains",
    ),
    ("minion-beacons.modify", Apart(&["return.0.web1.changes.diff"]), "the minion takes its time to enable a beacon"),
    ("v3006.9--minion-schedule.list", Apart(&["return.0.web1.enabled"]), "the schedule was switched before"),
    ("minion-beacons.list_available", Form, "depends on the machine"),
    ("minion-beacons.save", Form, "another folder"),
    ("minion-sys.list_functions", Form, "depends on the version"),
    ("minion-schedule.list-yaml", Form, "depends on the version"),
    ("minion-test.fib", Form, "how long it took"),
    ("minion-test.arg_repr", Form, "Python writes it"),
    ("minion-state.apply-broken", Form, "the parser's words"),
    ("minion-grains.get", Form, "depends on the machine"),
    ("minion-grains.item", Form, "depends on the machine"),
];

/// Captures that say nothing about this server.
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("events-idle", "nothing happens in it; a_stream_on_which_nothing_happens_is_kept_alive"),
    ("events-logout-closes", "its end comes earlier; a_stream_begins_as_it_should_and_ends_with_the_session"),
    ("events-noperm-user", "a defect; who_may_see_nothing_hears_nothing"),
    ("events-stream-denied", "a defect; a_refused_call_tells_nobody_a_secret"),
    ("events-stream-orchestrate", "orchestration is not offered yet"),
    ("events-stream-batch", "the batches of 3008 have events of their own"),
    ("wheel-key.list_all-initial", "from before there was a ghost1; wheel-key.list_all says the rest"),
    ("v3006.9--minion-grains.items", "the names of grains without their values; minion-grains.items says more"),
];
