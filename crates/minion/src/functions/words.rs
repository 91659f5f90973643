//! Splitting a command line into words as a shell would, without running one.

/// The words of a command line; nothing if a quote is not closed or a backslash has nothing behind it.
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '\\' => match chars.next()? {
                            c @ ('"' | '\\') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of Python's `shlex.split`.
    #[test]
    fn lines_split_as_in_python() {
        let check = |line: &str, words: &[&str]| assert_eq!(split(line).unwrap(), words, "{line:?}");
        check("", &[]);
        check("  a  b\tc\n", &["a", "b", "c"]);
        check("a 'b c' \"d e\"", &["a", "b c", "d e"]);
        check("a''b \"\" ''", &["ab", "", ""]);
        check(r#"a\ b "c\"d" "e\f" 'g\h'"#, &["a b", "c\"d", "e\\f", "g\\h"]);
        check("x='1 2'3", &["x=1 23"]);
    }

    #[test]
    fn what_is_left_open_is_refused() {
        for line in ["'a", "a \"b", "a\\", "\"a\\"] {
            assert_eq!(split(line), None, "{line:?}");
        }
    }
}
