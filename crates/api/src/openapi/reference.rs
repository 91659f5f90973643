//! The document as Markdown: `docs/reference/api.md`.

use super::describe::{Operation, fields, kind, schemas, subjects, text};
use serde_json::Value;
use std::fmt::Write;

/// The reference of the API, made from its document.
pub fn reference(document: &Value) -> String {
    let mut out = String::from(
        "# API\n\n<!-- Made from the OpenAPI document; `UPDATE=1 cargo test -p saltern-api --test openapi` writes it anew. -->\n\n",
    );
    let _ = writeln!(out, "{}\n", text(&document["info"]["description"]));
    out.push_str(EXAMPLES);
    out.push_str(
        "\nThe document is served as `/api/v1/openapi.json` and as a page at `/api/v1/docs`; this is the same text.\n\
         `*` marks what must be given. Every operation may also answer 400, 401, 403 and 503.\n",
    );
    for (subject, operations) in subjects(document) {
        let _ = writeln!(out, "\n## {}", capitalised(subject));
        operations.iter().for_each(|operation| write_operation(&mut out, operation));
    }
    out.push_str("\n## Schemas\n");
    for (name, schema) in schemas(document) {
        let _ = writeln!(out, "\n### {name}\n\n{}", text(&schema["description"]));
        write_fields(&mut out, document, schema);
    }
    out
}

const EXAMPLES: &str = "\
```console
$ curl --unix-socket /var/lib/saltern/control.sock http://localhost/api/v1/status
$ curl -H \"X-Auth-Token: $TOKEN\" https://salt.example.org:8000/api/v1/minions?presence=absent
$ curl -H \"X-Auth-Token: $TOKEN\" -H 'Content-Type: application/json' -H 'Idempotency-Key: 7f3a' \\
    https://salt.example.org:8000/api/v1/run -d '{\"target\": \"web*\", \"fun\": \"test.ping\"}'
$ curl -H \"X-Auth-Token: $TOKEN\" -H 'Content-Type: application/json' https://salt.example.org:8000/api/v1/actions -d '{
    \"type\": \"package_install\", \"params\": {\"packages\": [\"vim\"]}, \"target\": \"web*\",
    \"due\": \"2026-12-01T04:00:00+01:00\", \"deadline\": 14400,
    \"policy\": {\"offline\": \"hold\", \"batch\": {\"size\": {\"percent\": 10}}, \"budget\": {\"failures\": {\"count\": 3}}}}'
```
";

/// Answers that every operation has and that say nothing of it.
const COMMON: [&str; 7] = ["400", "401", "403", "408", "413", "415", "503"];

fn write_operation(out: &mut String, operation: &Operation<'_>) {
    let _ = writeln!(out, "\n### {}\n\n`{} {}`", operation.summary, operation.method, operation.path);
    if !operation.description.is_empty() {
        let _ = writeln!(out, "\n{}", operation.description);
    }
    if operation.is_open {
        out.push_str("\nNo log-in is needed.\n");
    }
    if !operation.parameters.is_empty() {
        out.push_str("\n| parameter | in | what it is | |\n|---|---|---|---|\n");
        for parameter in &operation.parameters {
            let star = if parameter.is_required { " *" } else { "" };
            let (name, place) = (parameter.name, parameter.place);
            let _ = writeln!(
                out,
                "| `{name}`{star} | {place} | {} | {} |",
                cell(&parameter.kind),
                cell(parameter.description)
            );
        }
    }
    if let Some(body) = operation.body {
        let _ = writeln!(out, "\nBody: {}", kind(body));
    }
    out.push('\n');
    for answer in operation.answers.iter().filter(|answer| !COMMON.contains(&answer.status)) {
        let body = answer.kind.as_deref().filter(|kind| *kind != "application/problem+json");
        let body = body.map(|kind| format!(" ({kind})")).unwrap_or_default();
        let _ = writeln!(out, "- {}: {}{body}", answer.status, answer.description);
    }
}

fn write_fields(out: &mut String, document: &Value, schema: &Value) {
    let fields = fields(document, schema);
    if fields.is_empty() {
        let _ = writeln!(out, "\n{}", kind(schema));
        return;
    }
    out.push_str("\n| field | what it is | |\n|---|---|---|\n");
    for field in fields {
        let star = if field.is_required { " *" } else { "" };
        let _ = writeln!(out, "| `{}`{star} | {} | {} |", field.name, cell(&field.kind), cell(field.description));
    }
}

/// Text that does not end its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
