//! A piece of an expression that remembers where it stood, so that an error can point at it.

/// How much of somebody's text an error repeats.
const SHOWN: usize = 24;

/// A piece of the text and the column of its first character; the first column is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'a> {
    pub(super) text: &'a str,
    pub(super) column: usize,
}

impl<'a> Part<'a> {
    pub(super) fn whole(text: &'a str) -> Part<'a> {
        Part { text, column: 1 }
    }

    /// The words between white space.
    pub(super) fn words(self) -> Vec<Part<'a>> {
        self.pieces(self.text.split(char::is_whitespace)).filter(|word| !word.text.is_empty()).collect()
    }

    /// The pieces between separators, empty ones too.
    pub(super) fn split(self, separator: char) -> impl Iterator<Item = Part<'a>> {
        self.pieces(self.text.split(separator))
    }

    fn pieces(self, pieces: impl Iterator<Item = &'a str>) -> impl Iterator<Item = Part<'a>> {
        pieces.scan(self.column, |column, text| {
            let part = Part { text, column: *column };
            // Every separator is one character.
            *column += text.chars().count() + 1;
            Some(part)
        })
    }

    /// What stands before and after the first separator.
    pub(super) fn split_once(self, separator: char) -> Option<(Part<'a>, Part<'a>)> {
        let (before, after) = self.text.split_once(separator)?;
        let column = self.column + before.chars().count() + 1;
        Some((Part { text: before, column: self.column }, Part { text: after, column }))
    }

    /// The piece without its first characters.
    pub(super) fn skip(self, count: usize) -> Part<'a> {
        let at = self.text.char_indices().nth(count).map_or(self.text.len(), |(at, _)| at);
        Part { text: &self.text[at..], column: self.column + count }
    }

    /// The piece without the letter it ends with, in either case; nothing where there is no more than the letter.
    pub(super) fn without_suffix(self, letter: char) -> Option<Part<'a>> {
        let text = self.text.strip_suffix([letter, letter.to_ascii_lowercase()])?;
        (!text.is_empty()).then_some(Part { text, ..self })
    }

    pub(super) fn trimmed(self) -> Part<'a> {
        let blank = self.text.chars().take_while(|c| c.is_whitespace()).count();
        Part { text: self.text.trim(), column: self.column + blank }
    }

    /// The text, cut where it is long.
    pub(super) fn short(self) -> String {
        let mut short: String = self.text.chars().take(SHOWN).collect();
        if short.len() < self.text.len() {
            short.push('…');
        }
        short
    }
}
