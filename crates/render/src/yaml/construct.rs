//! From nodes to values: merge keys, duplicate keys, and the budget that keeps aliases from multiplying for ever.

use std::collections::HashSet;
use std::mem::discriminant;

use saltern_core::value::{Map, Value};

use super::compose::{Content, Document, NodeId, error};
use super::resolve::{Tag, scalar_value};
use super::{MAX_DEPTH, MAX_NODES};
use crate::error::{Error, Position};

/// The value of a document.
pub(super) fn construct(document: Document) -> Result<Value, Error> {
    let root = document.root;
    let flattened = vec![false; document.nodes.len()];
    Constructor { document, flattened, budget: MAX_NODES }.value(root, 0)
}

struct Constructor {
    document: Document,
    /// The mappings whose merge keys are resolved already.
    flattened: Vec<bool>,
    budget: usize,
}

impl Constructor {
    fn value(&mut self, id: NodeId, depth: usize) -> Result<Value, Error> {
        let at = self.document.nodes[id].at;
        self.spend(1, at)?;
        if depth > MAX_DEPTH {
            return Err(error("nested too deeply, or an alias inside of what it names", at));
        }
        let node = &self.document.nodes[id];
        match (&node.tag, &node.content) {
            (tag, Content::Scalar(text)) => scalar_value(tag, text).map_err(|problem| error(&problem, at)),
            (Tag::Seq, Content::Sequence(items)) => {
                let items = items.clone();
                items.into_iter().map(|item| self.value(item, depth + 1)).collect::<Result<_, _>>().map(Value::List)
            }
            (Tag::Pairs, Content::Sequence(items)) => {
                let items = items.clone();
                items.into_iter().map(|item| self.pair(item, depth + 1)).collect::<Result<_, _>>().map(Value::List)
            }
            (Tag::Map | Tag::Omap, Content::Mapping(_)) => self.mapping(id, depth).map(Value::Map),
            (Tag::Set, Content::Mapping(_)) => {
                let keys = self.mapping(id, depth)?.into_iter().map(|(key, _)| key).collect();
                Ok(Value::List(keys))
            }
            (Tag::Seq | Tag::Pairs, content) => {
                Err(error(&format!("expected a sequence node, but found {}", content.kind()), at))
            }
            (Tag::Map | Tag::Omap | Tag::Set, content) => {
                Err(error(&format!("expected a mapping node, but found {}", content.kind()), at))
            }
            (Tag::Unknown(_) | Tag::Merge | Tag::Value, _) => {
                Err(error(&format!("could not determine a constructor for the tag '{}'", node.tag.uri()), at))
            }
            (_, content) => Err(error(&format!("expected a scalar node, but found {}", content.kind()), at)),
        }
    }

    fn mapping(&mut self, id: NodeId, depth: usize) -> Result<Map, Error> {
        self.flatten(id, depth)?;
        let start = self.document.nodes[id].at;
        let fail =
            |problem: String, at| Error::Yaml { problem, at, context: Some(("while constructing a mapping", start)) };
        let Content::Mapping(pairs) = &self.document.nodes[id].content else { return Ok(Map::new()) };
        let pairs = pairs.clone();
        let mut seen = HashSet::with_capacity(pairs.len());
        let mut map = Map::with_capacity(pairs.len());
        for (key_id, value_id) in pairs {
            let at = self.document.nodes[key_id].at;
            if !matches!(self.document.nodes[key_id].content, Content::Scalar(_)) {
                let hint = "found unacceptable key (a list or a map; possibly double curly braces)";
                return Err(fail(hint.to_owned(), at));
            }
            let key = self.value(key_id, depth + 1)?;
            let value = self.value(value_id, depth + 1)?;
            if !seen.insert(python_identity(&key)) {
                return Err(fail(format!("found conflicting ID '{}'", key.key_text()), at));
            }
            map.push(key, value);
        }
        Ok(map)
    }

    fn pair(&mut self, id: NodeId, depth: usize) -> Result<Value, Error> {
        let at = self.document.nodes[id].at;
        match &self.document.nodes[id].content {
            Content::Mapping(pairs) if pairs.len() == 1 => {
                let (key, value) = pairs[0];
                Ok(Value::List(vec![self.value(key, depth + 1)?, self.value(value, depth + 1)?]))
            }
            _ => Err(error("expected a single mapping item in pairs", at)),
        }
    }

    /// Resolves `<<`: what is merged goes before the mapping's own entries, and gives way to them. As in Salt, two merged
    /// mappings with a key in common are a conflict.
    fn flatten(&mut self, id: NodeId, depth: usize) -> Result<(), Error> {
        if std::mem::replace(&mut self.flattened[id], true) {
            return Ok(());
        }
        let start = self.document.nodes[id].at;
        if depth > MAX_DEPTH {
            return Err(error("merge keys nested too deeply", start));
        }
        let Content::Mapping(pairs) = &self.document.nodes[id].content else { return Ok(()) };
        let pairs = pairs.clone();
        let (mut own, mut merged) = (Vec::with_capacity(pairs.len()), Vec::new());
        for (key, value) in pairs {
            match self.document.nodes[key].tag {
                Tag::Merge => self.merge_from(value, start, depth, &mut merged)?,
                Tag::Value => {
                    self.document.nodes[key].tag = Tag::Str;
                    own.push((key, value));
                }
                _ => own.push((key, value)),
            }
        }
        if !merged.is_empty() {
            self.spend(merged.len(), start)?;
            let names: HashSet<&str> = own.iter().filter_map(|(key, _)| self.scalar(*key)).collect();
            merged.retain(|(key, _)| self.scalar(*key).is_none_or(|name| !names.contains(name)));
            merged.append(&mut own);
            own = merged;
        }
        self.document.nodes[id].content = Content::Mapping(own);
        Ok(())
    }

    fn merge_from(
        &mut self,
        from: NodeId,
        start: Position,
        depth: usize,
        merged: &mut Vec<(NodeId, NodeId)>,
    ) -> Result<(), Error> {
        let at = self.document.nodes[from].at;
        let fail =
            |problem: String, at| Error::Yaml { problem, at, context: Some(("while constructing a mapping", start)) };
        match &self.document.nodes[from].content {
            Content::Mapping(_) => self.merge_mapping(from, depth, merged),
            Content::Sequence(items) => {
                let items = items.clone();
                for item in items.into_iter().rev() {
                    let node = &self.document.nodes[item];
                    if !matches!(node.content, Content::Mapping(_)) {
                        let problem = format!("expected a mapping for merging, but found {}", node.content.kind());
                        return Err(fail(problem, node.at));
                    }
                    self.merge_mapping(item, depth, merged)?;
                }
                Ok(())
            }
            Content::Scalar(_) => {
                Err(fail("expected a mapping or list of mappings for merging, but found scalar".to_owned(), at))
            }
        }
    }

    fn merge_mapping(&mut self, from: NodeId, depth: usize, merged: &mut Vec<(NodeId, NodeId)>) -> Result<(), Error> {
        self.flatten(from, depth + 1)?;
        if let Content::Mapping(pairs) = &self.document.nodes[from].content {
            let (pairs, at) = (pairs.clone(), self.document.nodes[from].at);
            self.spend(pairs.len(), at)?;
            merged.extend(pairs);
        }
        Ok(())
    }

    fn scalar(&self, id: NodeId) -> Option<&str> {
        match &self.document.nodes[id].content {
            Content::Scalar(text) => Some(text),
            _ => None,
        }
    }

    fn spend(&mut self, nodes: usize, at: Position) -> Result<(), Error> {
        self.budget = self
            .budget
            .checked_sub(nodes)
            .ok_or_else(|| error(&format!("the document expands to more than {MAX_NODES} values"), at))?;
        Ok(())
    }
}

/// What two keys share when Python takes them for one: `1`, `1.0` and `true` are the same key.
fn python_identity(key: &Value) -> (u8, String) {
    match key {
        Value::Bool(bool) => (1, i64::from(*bool).to_string()),
        Value::Int(int) => (1, int.to_string()),
        Value::UInt(int) => (1, int.to_string()),
        Value::Float(float) if float.fract() == 0.0 && float.abs() < 1e15 => (1, format!("{float:.0}")),
        Value::Float(float) => (1, float.to_string()),
        Value::Text(text) => (2, text.to_string()),
        Value::Bytes(bytes) => (3, bytes.iter().map(|b| format!("{b:02x}")).collect()),
        other => (4, format!("{:?}{}", discriminant(other), other.key_text())),
    }
}
