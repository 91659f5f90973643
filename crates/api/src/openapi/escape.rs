//! Text in HTML, and the little Markdown that descriptions are written in.

/// Text as HTML shows it.
pub(super) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

/// Paragraphs with `code` and **strong** words, as HTML.
pub(super) fn prose(text: &str) -> String {
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
    paragraphs.map(|paragraph| format!("<p>{}</p>", line(paragraph))).collect()
}

/// The same without the paragraphs.
pub(super) fn line(text: &str) -> String {
    let mut out = String::new();
    for (at, piece) in html(text).split('`').enumerate() {
        if at % 2 == 1 {
            out.push_str(&format!("<code>{piece}</code>"));
            continue;
        }
        for (at, piece) in piece.split("**").enumerate() {
            match at % 2 {
                1 => out.push_str(&format!("<strong>{piece}</strong>")),
                _ => out.push_str(piece),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(html(r#"<a href="x">&"#), "&lt;a href=&quot;x&quot;&gt;&amp;");
        assert_eq!(line("`<b>` and **strong**"), "<code>&lt;b&gt;</code> and <strong>strong</strong>");
        assert_eq!(prose("one\n\ntwo"), "<p>one</p><p>two</p>");
    }
}
