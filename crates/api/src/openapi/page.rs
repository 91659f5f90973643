//! The document as a page: plain HTML and a style sheet of our own, no script, nothing from elsewhere.

use super::describe::{Operation, fields, kind, schemas, subjects, text};
use super::escape::{html, line, prose};
use serde_json::Value;
use std::fmt::Write;

/// What the page looks like.
pub(crate) const STYLE: &str = include_str!("page.css");

/// The page.
pub(crate) fn page(document: &Value) -> String {
    let title = text(&document["info"]["title"]);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0} API</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"stylesheet\" href=\"/api/v1/docs.css\"></head><body>\n<nav><h1>{0} API</h1>",
        html(title)
    );
    let subjects = subjects(document);
    for (subject, operations) in &subjects {
        let _ = write!(out, "<h2><a href=\"#{0}\">{0}</a></h2><ul>", html(subject));
        for operation in operations {
            let _ = write!(out, "<li><a href=\"#{}\">{}</a></li>", html(operation.id), line(operation.summary));
        }
        out.push_str("</ul>");
    }
    out.push_str("<h2><a href=\"#schemas\">schemas</a></h2></nav>\n<main>");
    let _ = write!(out, "<p>Version {}</p>", html(text(&document["info"]["version"])));
    out.push_str("<p>For programs: <a href=\"/api/v1/openapi.json\">the OpenAPI document</a>.</p>");
    out.push_str(&prose(text(&document["info"]["description"])));
    for (subject, operations) in &subjects {
        let _ = write!(out, "\n<h2 id=\"{0}\">{0}</h2>", html(subject));
        operations.iter().for_each(|operation| write_operation(&mut out, document, operation));
    }
    out.push_str("\n<h2 id=\"schemas\">schemas</h2>");
    for (name, schema) in schemas(document) {
        let _ = write!(out, "\n<section id=\"schema-{0}\"><h3>{0}</h3>", html(name));
        out.push_str(&prose(text(&schema["description"])));
        write_fields(&mut out, document, schema);
        out.push_str("</section>");
    }
    out.push_str("</main></body></html>\n");
    out
}

fn write_operation(out: &mut String, document: &Value, operation: &Operation<'_>) {
    let _ = write!(
        out,
        "\n<section id=\"{}\"><h3>{}</h3><p class=\"route\"><b class=\"{}\">{}</b> <code>{}</code></p>",
        html(operation.id),
        line(operation.summary),
        operation.method.to_lowercase(),
        operation.method,
        html(operation.path)
    );
    out.push_str(&prose(operation.description));
    if operation.is_open {
        out.push_str("<p>No log-in is needed.</p>");
    }
    if !operation.parameters.is_empty() {
        out.push_str("<table><tr><th>parameter</th><th>in</th><th>what it is</th><th></th></tr>");
        for parameter in &operation.parameters {
            let _ = write!(
                out,
                "<tr><td><code>{}</code>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                html(parameter.name),
                if parameter.is_required { " *" } else { "" },
                html(parameter.place),
                linked(document, &parameter.kind),
                line(parameter.description)
            );
        }
        out.push_str("</table>");
    }
    if let Some(body) = operation.body {
        let _ = write!(out, "<p>Body: {}</p>", linked(document, &kind(body)));
    }
    out.push_str("<table><tr><th>status</th><th>body</th><th></th></tr>");
    for answer in &operation.answers {
        let body = answer.kind.as_deref().map(|kind| linked(document, kind)).unwrap_or_default();
        let _ = write!(out, "<tr><td>{}</td><td>{body}</td><td>{}</td></tr>", answer.status, line(answer.description));
    }
    out.push_str("</table></section>");
}

fn write_fields(out: &mut String, document: &Value, schema: &Value) {
    let fields = fields(document, schema);
    if fields.is_empty() {
        let _ = write!(out, "<p>{}</p>", linked(document, &kind(schema)));
        return;
    }
    out.push_str("<table><tr><th>field</th><th>what it is</th><th></th></tr>");
    for field in &fields {
        let _ = write!(
            out,
            "<tr><td><code>{}</code>{}</td><td>{}</td><td>{}</td></tr>",
            html(&field.name),
            if field.is_required { " *" } else { "" },
            linked(document, &field.kind),
            line(field.description)
        );
    }
    out.push_str("</table>");
}

/// A kind, with each name of a schema a link to it.
fn linked(document: &Value, kind: &str) -> String {
    let known = &document["components"]["schemas"];
    let words = kind.split(' ').map(|word| match known.get(word) {
        Some(_) => format!("<a href=\"#schema-{0}\">{0}</a>", html(word)),
        None => line(word),
    });
    words.collect::<Vec<_>>().join(" ")
}
