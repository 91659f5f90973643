//! What cannot be said by a value to compare with: headers, archives, what has to be absent.

use saltern_testkit::http::Reply;
use serde_json::Value;

type Verdict = Result<(), String>;

/// A preflight that lets the page of an allowed site go on.
pub(crate) fn preflight(reply: &Reply) -> Verdict {
    no_error(reply)?;
    let header = |name: &str| reply.header(name).unwrap_or_default().to_ascii_lowercase();
    must(header("Access-Control-Allow-Origin") == "http://example.test", reply, "it allows no such origin")?;
    must(header("Access-Control-Allow-Credentials") == "true", reply, "it allows no credentials")?;
    for method in ["get", "post"] {
        must(header("Access-Control-Allow-Methods").contains(method), reply, "a method is missing")?;
    }
    for name in ["content-type", "x-auth-token", "x-requested-with"] {
        must(header("Access-Control-Allow-Headers").contains(name), reply, "a header is missing")?;
    }
    Ok(())
}

/// No error, whatever it says.
pub(crate) fn no_error(reply: &Reply) -> Verdict {
    must((200..300).contains(&reply.status), reply, "it is an error")
}

/// An error of a server that has no such URL, told in JSON.
pub(crate) fn nothing_there(reply: &Reply) -> Verdict {
    let is_json = reply.header("Content-Type").is_some_and(|kind| kind.contains("json"));
    must(
        reply.status == 404 && is_json && reply.json()["status"] == 404,
        reply,
        "it does not say that nothing is there",
    )
}

/// What `/token` gives.
pub(crate) fn token(reply: &Reply) -> Verdict {
    no_error(reply)?;
    let first = &reply.json()[0];
    let is_token = first["token"].as_str().is_some_and(is_hex) && first["start"].is_f64() && first["expire"].is_f64();
    must(is_token && first["name"].is_string() && first["eauth"].is_string(), reply, "it is no token")
}

/// A login that did not take over the token it was sent.
pub(crate) fn new_token(reply: &Reply) -> Verdict {
    no_error(reply)?;
    let token = reply.json()["return"][0]["token"].as_str().unwrap_or_default().to_owned();
    must(is_hex(&token) && reply.header("X-Auth-Token") == Some(token.as_str()), reply, "it gives no token")
}

fn is_hex(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// An archive of a minion's two keys.
pub(crate) fn archive(reply: &Reply) -> Verdict {
    no_error(reply)?;
    must(reply.header("Content-Type") == Some("application/x-tar"), reply, "it is no archive")?;
    must(reply.header("Cache-Control").is_some_and(|cache| cache.contains("no-")), reply, "a key may be cached")?;
    let members = members(&reply.body);
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    must(names == ["minion.pub", "minion.pem"], reply, "other files are in it")?;
    let begins = |index: usize, text: &str| members.get(index).is_some_and(|(_, content)| content.starts_with(text));
    let is_private = begins(1, "-----BEGIN RSA PRIVATE KEY") || begins(1, "-----BEGIN PRIVATE KEY");
    must(begins(0, "-----BEGIN PUBLIC KEY") && is_private, reply, "its files are no keys")
}

/// The files of a tar archive: each has a block of 512 bytes with its name and its size in octal digits, then its content.
fn members(mut bytes: &[u8]) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_matches(['\0', ' ']).to_owned();
    let mut found = Vec::new();
    while bytes.len() > 512 && bytes[0] != 0 {
        let (head, rest) = bytes.split_at(512);
        let size = usize::from_str_radix(&text(&head[124..136]), 8).unwrap_or(0).min(rest.len());
        found.push((text(&head[..100]), text(&rest[..size])));
        bytes = &rest[size.next_multiple_of(512).min(rest.len())..];
    }
    found
}

/// Counters: an object of objects, which is all that SaltGUI asks for.
pub(crate) fn statistics(reply: &Reply) -> Verdict {
    no_error(reply)?;
    let body = reply.json();
    let is_table = body.as_object().is_some_and(|table| table.values().all(Value::is_object));
    must(is_table, reply, "it is no object of objects")
}

/// Several functions in one text are several functions, as on the command line.
pub(crate) fn several_functions(reply: &Reply) -> Result<(), String> {
    let answer = &reply.json()["return"][0]["web1"];
    let expected = serde_json::json!({ "test.ping": true, "test.echo": "hello" });
    if answer["ret"] == expected { Ok(()) } else { Err(answer.to_string()) }
}

/// The newest job: one, with what is known of it.
pub(crate) fn last_job(reply: &Reply) -> Verdict {
    no_error(reply)?;
    let body = reply.json();
    let jobs = body["return"][0].as_object().filter(|jobs| jobs.len() == 1);
    let job = jobs.and_then(|jobs| jobs.values().next());
    let fields = ["Function", "Arguments", "Target", "Target-type", "User", "StartTime", "Result"];
    must(job.is_some_and(|job| fields.iter().all(|field| job.get(field).is_some())), reply, "it is no job")
}

/// What clients may know of the configuration, and nothing else.
pub(crate) fn configuration(reply: &Reply) -> Verdict {
    no_error(reply)?;
    let body = reply.json();
    let values = &body["return"][0]["data"]["return"];
    must(
        values["id"] == "host1_master" && values["nodegroups"]["web"] == "L@web1",
        reply,
        "it does not say who it is",
    )?;
    must(values["saltgui_templates"]["t1"]["command"] == "test.ping", reply, "SaltGUI's own settings are missing")?;
    must(values["reactor"].is_array(), reply, "the reactor is missing")?;
    let text = reply.text();
    let secrets = ["s3cret", "external_auth", "users.txt", "adminpw", "sharedsecret"];
    must(!secrets.iter().any(|secret| text.contains(secret)), reply, "it tells secrets")
}

fn must(fact: bool, reply: &Reply, complaint: &str) -> Verdict {
    if fact {
        return Ok(());
    }
    let text: String = reply.text().chars().take(300).collect();
    Err(format!("{complaint}: {} {:?} {text}", reply.status, reply.headers))
}
