//! One thing with what is known of it, a line each.

use super::style::{Colour, Style};

/// `NAME:` and below it the fields, their values aligned.
pub(crate) fn fields(name: &str, fields: &[(&str, String)], style: Style) -> String {
    let width = fields.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let mut lines = vec![format!("{}:", style.paint(Colour::Cyan, &super::text::clean(name)))];
    lines.extend(
        fields
            .iter()
            .map(|(label, value)| format!("    {label:<width$}  {}", super::text::clean(value)).trim_end().to_owned()),
    );
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_aligned_and_harmless() {
        let shown =
            fields("ann", &[("Roles", "reader".into()), ("Full name", "A\x1b".into()), ("x", "".into())], Style::PLAIN);
        assert_eq!(shown, "ann:\n    Roles      reader\n    Full name  A?\n    x");
    }
}
