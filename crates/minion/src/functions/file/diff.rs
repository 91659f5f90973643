//! What has changed in a text, as a unified diff: Python's, so that returns look alike.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

/// Lines shown around a change.
const AROUND: usize = 3;

/// Texts that differ in more pairs of lines than this are told as replaced altogether: comparing them takes too long.
const MOST_PAIRS: usize = 20_000_000;

/// Where two texts say the same: first line here, first line there, number of lines.
type Block = (usize, usize, usize);

/// The differences, or nothing if there are none. Lines have their line breaks.
pub(super) fn unified(old: &[&str], new: &[&str]) -> String {
    let mut out = String::new();
    for hunk in hunks(&changes(old, new), old.len(), new.len()) {
        if out.is_empty() {
            out.push_str("--- \n+++ \n");
        }
        let whole = |part: fn(&Change) -> &Range<usize>| {
            part(&hunk[0]).start.saturating_sub(hunk[0].before)
                ..part(&hunk[hunk.len() - 1]).end + hunk[hunk.len() - 1].after
        };
        let (there, here) = (whole(|change| &change.old), whole(|change| &change.new));
        let _ = writeln!(out, "@@ -{} +{} @@", shown(&there), shown(&here));
        let mut at = there.start;
        for change in &hunk {
            old[at..change.old.start].iter().for_each(|line| write_line(&mut out, ' ', line));
            old[change.old.clone()].iter().for_each(|line| write_line(&mut out, '-', line));
            new[change.new.clone()].iter().for_each(|line| write_line(&mut out, '+', line));
            at = change.old.end;
        }
        old[at..there.end].iter().for_each(|line| write_line(&mut out, ' ', line));
    }
    out
}

fn write_line(out: &mut String, mark: char, line: &str) {
    out.push(mark);
    out.push_str(line);
}

fn shown(lines: &Range<usize>) -> String {
    match lines.len() {
        1 => (lines.start + 1).to_string(),
        0 => format!("{},0", lines.start),
        length => format!("{},{length}", lines.start + 1),
    }
}

/// One place where the texts differ, and how much is shown around it.
#[derive(Clone, Debug)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
    before: usize,
    after: usize,
}

/// Changes near each other share a hunk.
fn hunks(changes: &[(Range<usize>, Range<usize>)], old_len: usize, new_len: usize) -> Vec<Vec<Change>> {
    let mut hunks: Vec<Vec<Change>> = Vec::new();
    for (index, (old, new)) in changes.iter().enumerate() {
        let gap = index.checked_sub(1).map(|earlier| old.start - changes[earlier].0.end);
        let after = (old_len - old.end).min(new_len - new.end).min(AROUND);
        let before = old.start.min(new.start).min(AROUND);
        let change = Change { old: old.clone(), new: new.clone(), before, after };
        match hunks.last_mut() {
            Some(hunk) if gap.is_some_and(|gap| gap <= 2 * AROUND) => hunk.push(change),
            _ => hunks.push(vec![change]),
        }
    }
    hunks
}

fn changes(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let mut blocks = Vec::new();
    let ends = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - ends;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    blocks.push((0, 0, ends));
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    if (old_end - ends).saturating_mul(new_end - ends) <= MOST_PAIRS {
        match_blocks(old, new, ends..old_end, ends..new_end, &mut blocks);
    }
    blocks.push((old_end, new_end, tail));
    let (mut at, mut changes) = ((0, 0), Vec::new());
    for (old_at, new_at, length) in blocks {
        if at.0 < old_at || at.1 < new_at {
            changes.push((at.0..old_at, at.1..new_at));
        }
        at = (old_at + length, new_at + length);
    }
    changes
}

/// Finds the longest part that is the same, then the same on both sides of it.
fn match_blocks(old: &[&str], new: &[&str], there: Range<usize>, here: Range<usize>, blocks: &mut Vec<Block>) {
    // A stack of our own: a text can have as many parts as lines.
    let mut found: Vec<Block> = Vec::new();
    let mut pending = vec![(there, here)];
    while let Some((there, here)) = pending.pop() {
        let (old_at, new_at, length) = longest(old, new, &there, &here);
        if length > 0 {
            found.push((old_at, new_at, length));
            pending.push((there.start..old_at, here.start..new_at));
            pending.push((old_at + length..there.end, new_at + length..here.end));
        }
    }
    found.sort_unstable();
    blocks.extend(found);
}

fn longest(old: &[&str], new: &[&str], there: &Range<usize>, here: &Range<usize>) -> Block {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for at in here.clone() {
        places.entry(new[at]).or_default().push(at);
    }
    let (mut best, mut lengths) = ((there.start, here.start, 0), HashMap::<usize, usize>::new());
    for old_at in there.clone() {
        let mut next = HashMap::new();
        for &new_at in places.get(old[old_at]).into_iter().flatten() {
            let length = new_at.checked_sub(1).and_then(|before| lengths.get(&before)).copied().unwrap_or(0) + 1;
            next.insert(new_at, length);
            if length > best.2 {
                best = (old_at + 1 - length, new_at + 1 - length, length);
            }
        }
        lengths = next;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        let lines = |text: &'static str| text.split_inclusive('\n').collect::<Vec<_>>();
        unified(&lines(old.to_owned().leak()), &lines(new.to_owned().leak()))
    }

    /// Answers of Python's difflib.
    #[test]
    fn differences_look_like_pythons() {
        assert_eq!(diff("a\n", "a\n"), "");
        assert_eq!(
            diff("one\ntwo\nthree\n", "one\nwot\nhreet\n"),
            "--- \n+++ \n@@ -1,3 +1,3 @@\n one\n-two\n-three\n+wot\n+hreet\n"
        );
        assert_eq!(diff("", "a\n"), "--- \n+++ \n@@ -0,0 +1 @@\n+a\n");
        assert_eq!(diff("a\n", ""), "--- \n+++ \n@@ -1 +0,0 @@\n-a\n");
        let old: String = (0..20).map(|n| format!("{n}\n")).collect();
        let new = old.replace("2\n3\n", "2\nx\n").replace("\n17\n", "\n");
        let expected = "--- \n+++ \n@@ -1,7 +1,7 @@\n 0\n 1\n 2\n-3\n+x\n 4\n 5\n 6\n\
                        @@ -15,6 +15,5 @@\n 14\n 15\n 16\n-17\n 18\n 19\n";
        assert_eq!(diff(&old, &new), expected);
    }
}
