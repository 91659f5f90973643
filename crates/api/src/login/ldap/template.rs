//! Text with `{{ username }}` in it, which is all of Jinja that these settings use.

/// Literal bytes, and places for the user's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(Vec<u8>),
    User,
}

impl Template {
    /// Reads a template; anything else in double braces is an error.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let only = || "only {{ username }} can be used between braces".to_owned();
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, behind) = after.split_once("}}").ok_or_else(only)?;
            if name.trim() != "username" {
                return Err(only());
            }
            pieces.push(Piece::Literal(before.into()));
            pieces.push(Piece::User);
            rest = behind;
        }
        if text.contains("{%") {
            return Err(only());
        }
        pieces.push(Piece::Literal(rest.into()));
        pieces.retain(|piece| *piece != Piece::Literal(Vec::new()));
        Ok(Self(pieces))
    }

    /// A template of bytes that stay as they are.
    pub(super) fn literal(text: &str) -> Self {
        Self(vec![Piece::Literal(text.into())])
    }

    /// A template that is the name.
    pub(super) fn user() -> Self {
        Self(vec![Piece::User])
    }

    /// Changes the literal pieces.
    pub(super) fn map(self, change: impl Fn(&[u8]) -> Result<Vec<u8>, String>) -> Result<Self, String> {
        let pieces = self.0.into_iter().map(|piece| match piece {
            Piece::Literal(bytes) => change(&bytes).map(Piece::Literal),
            Piece::User => Ok(Piece::User),
        });
        pieces.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn has_user(&self) -> bool {
        self.0.contains(&Piece::User)
    }

    /// Whether a literal piece has this byte.
    pub(super) fn contains(&self, byte: u8) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Literal(bytes) if bytes.contains(&byte)))
    }

    pub(super) fn render(&self, user: &str) -> Vec<u8> {
        let piece = |piece: &'_ Piece| match piece {
            Piece::Literal(bytes) => bytes.clone(),
            Piece::User => user.as_bytes().to_vec(),
        };
        self.0.iter().flat_map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_put_where_it_belongs_and_is_not_read_again() {
        let template = Template::parse("uid={{ username }},o={{username}}").unwrap();
        assert_eq!(template.render("{{ username }}"), b"uid={{ username }},o={{ username }}");
        assert!(template.has_user() && !Template::parse("uid=ann").unwrap().has_user());
    }

    #[test]
    fn other_jinja_is_refused() {
        for text in ["{{ user }}", "{{ username", "{{ username|lower }}", "{% if x %}", "{{}}"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }
}
