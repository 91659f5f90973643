//! From parser events to a graph of nodes, in which an alias is the node it names.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Tag as ParsedTag};

use super::MAX_DEPTH;
use super::resolve::{Tag, resolve_plain};
use crate::error::{Error, Position};

/// The place of a node in [`Document::nodes`].
pub(super) type NodeId = usize;

/// One composed document.
pub(super) struct Document {
    pub(super) nodes: Vec<Node>,
    pub(super) root: NodeId,
}

/// One node of a document.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) tag: Tag,
    pub(super) content: Content,
    pub(super) at: Position,
}

#[derive(Clone, PartialEq)]
pub(super) enum Content {
    Scalar(String),
    Sequence(Vec<NodeId>),
    Mapping(Vec<(NodeId, NodeId)>),
}

impl Content {
    /// The kind as Salt's messages name it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Scalar(_) => "scalar",
            Self::Sequence(_) => "sequence",
            Self::Mapping(_) => "mapping",
        }
    }
}

/// The only document in `text`, or nothing if there is none.
pub(super) fn compose(text: &str) -> Result<Option<Document>, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    refuse_control_characters(text)?;
    let mut composer = Composer { text, ..Composer::default() };
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|err| scan_error(&err))?;
        let at = position(span.start);
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(_) if root.is_some() => {
                return Err(error("expected a single document in the stream, but found another document", at));
            }
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
            Event::Alias(anchor) => {
                let node = *composer.anchors.get(&anchor).ok_or_else(|| error("found undefined alias", at))?;
                composer.attach(node, &mut root);
            }
            Event::Scalar(value, style, anchor, tag) => {
                let tag = scalar_tag(tag.as_deref(), &value, style);
                let node = composer.add(tag, Content::Scalar(value.into_owned()), anchor, at)?;
                composer.attach(node, &mut root);
            }
            Event::SequenceStart(anchor, tag) => {
                let tag = collection_tag(tag.as_deref(), Tag::Seq);
                let node = composer.add(tag, Content::Sequence(Vec::new()), anchor, at)?;
                composer.open(node, &mut root, at)?;
            }
            Event::MappingStart(anchor, tag) => {
                let tag = collection_tag(tag.as_deref(), Tag::Map);
                let node = composer.add(tag, Content::Mapping(Vec::new()), anchor, at)?;
                composer.open(node, &mut root, at)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                composer.open.pop();
            }
        }
    }
    Ok(root.map(|root| Document { nodes: composer.nodes, root }))
}

#[derive(Default)]
struct Composer<'a> {
    text: &'a str,
    nodes: Vec<Node>,
    anchors: HashMap<usize, NodeId>,
    /// The collections being read, with the key that waits for its value.
    open: Vec<(NodeId, Option<NodeId>)>,
}

impl Composer<'_> {
    fn add(&mut self, tag: Tag, content: Content, anchor: usize, at: Position) -> Result<NodeId, Error> {
        let id = self.nodes.len();
        if id == 0 {
            self.refuse_tab_before(at)?;
        }
        self.nodes.push(Node { tag, content, at });
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        Ok(id)
    }

    /// The parser lets a tab indent the first line of a document; libyaml does not.
    fn refuse_tab_before(&self, at: Position) -> Result<(), Error> {
        let line = self.text.lines().nth(at.line.saturating_sub(1)).unwrap_or_default();
        if line.starts_with('\t') { Err(error("found a tab that cannot start any token", at)) } else { Ok(()) }
    }

    fn attach(&mut self, node: NodeId, root: &mut Option<NodeId>) {
        let Some((parent, key)) = self.open.last_mut() else {
            *root = Some(node);
            return;
        };
        match &mut self.nodes[*parent].content {
            Content::Sequence(items) => items.push(node),
            Content::Mapping(pairs) => match key.take() {
                Some(key) => pairs.push((key, node)),
                None => *key = Some(node),
            },
            Content::Scalar(_) => {}
        }
    }

    fn open(&mut self, node: NodeId, root: &mut Option<NodeId>, at: Position) -> Result<(), Error> {
        self.attach(node, root);
        self.open.push((node, None));
        if self.open.len() > MAX_DEPTH { Err(error("nested too deeply", at)) } else { Ok(()) }
    }
}

fn scalar_tag(tag: Option<&ParsedTag>, value: &str, style: ScalarStyle) -> Tag {
    match tag {
        // A lone `!` leaves the decision to the rules below, as libyaml does.
        Some(tag) if !is_unspecific(tag) => explicit_tag(tag),
        _ if style == ScalarStyle::Plain => resolve_plain(value),
        _ => Tag::Str,
    }
}

fn collection_tag(tag: Option<&ParsedTag>, default: Tag) -> Tag {
    match tag {
        Some(tag) if !is_unspecific(tag) => explicit_tag(tag),
        _ => default,
    }
}

fn is_unspecific(tag: &ParsedTag) -> bool {
    (tag.handle == "!" && tag.suffix.is_empty()) || (tag.handle.is_empty() && tag.suffix == "!")
}

fn explicit_tag(tag: &ParsedTag) -> Tag {
    Tag::from_uri(&format!("{}{}", tag.handle, tag.suffix))
}

fn position(mark: Marker) -> Position {
    Position { line: mark.line(), column: mark.col() + 1 }
}

pub(super) fn error(problem: &str, at: Position) -> Error {
    Error::Yaml { problem: problem.to_owned(), at, context: None }
}

fn scan_error(err: &ScanError) -> Error {
    error(err.info(), position(*err.marker()))
}

/// libyaml takes printable characters only; a control character in YAML is a mistake or an attack.
fn refuse_control_characters(text: &str) -> Result<(), Error> {
    let printable = |c: char| {
        matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
            || c > '\u{ffff}'
    };
    let Some((offset, bad)) = text.char_indices().find(|(_, c)| !printable(*c)) else { return Ok(()) };
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let at = Position { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 };
    Err(error(&format!("unacceptable character #x{:04x}", u32::from(bad)), at))
}
