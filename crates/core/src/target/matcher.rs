//! A compiled target, and the question it answers: is this minion meant?

use super::address::Address;
use super::compound::{self, Engine};
use super::error::TargetError;
use super::glob::Glob;
use super::keyvalue::{KeyValue, Reading};
use super::nodegroups::Nodegroups;
use super::regex::{MAX_PATTERN, Regex, RegexFault};
use super::{Expression, Target, TargetType};
use crate::ids::MinionId;
use crate::value::Value;
use std::collections::HashSet;
use std::sync::Arc;

/// How many regular expressions one target may hold; each may take megabytes when compiled.
const MAX_REGEXES: usize = 100;
/// Longest expression of any type but list.
const MAX_EXPRESSION: usize = 1 << 20;
/// The delimiter where none is given.
const COLON: char = ':';

/// What is known about a minion. Only what [`Matcher::needs`] names is asked for.
pub trait Facts {
    /// Its id.
    fn id(&self) -> &str;
    /// Its grains, if we have them. A minion without matches no grain or address term.
    fn grains(&self) -> Option<&Value>;
    /// The pillar we serve it, if we have it. A minion without matches no pillar term.
    fn pillar(&self) -> Option<&Value>;
}

/// A minion of which nothing but the id is known.
impl Facts for MinionId {
    fn id(&self) -> &str {
        self.as_str()
    }
    fn grains(&self) -> Option<&Value> {
        None
    }
    fn pillar(&self) -> Option<&Value> {
        None
    }
}

/// What has to be loaded before matching.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// Grains
    pub grains: bool,
    /// Pillar
    pub pillar: bool,
}

/// A compiled target. Compile once, ask for every minion.
#[derive(Debug, Clone)]
pub struct Matcher {
    node: Node,
    needs: Needs,
    listed: Option<Vec<Arc<str>>>,
}

impl Matcher {
    pub(super) fn compile(target: &Target, nodegroups: &Nodegroups) -> Result<Self, TargetError> {
        let mut compiler =
            Compiler { exact_pillar: target.kind == TargetType::CompoundPillarExact, ..Compiler::default() };
        let node = compiler.target(target, nodegroups)?;
        let listed = (!compiler.listed.is_empty() || target.kind == TargetType::List).then_some(compiler.listed);
        Ok(Self { node, needs: compiler.needs, listed })
    }

    /// Whether the target means this minion.
    pub fn matches(&self, minion: &dyn Facts) -> bool {
        self.node.matches(minion)
    }

    /// What [`Matcher::matches`] will ask for besides the id.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// The top-level grains that decide, without repetition; `None` if any may (`*:value`). Looking up one grain among a
    /// minion's sixty costs more than comparing it, so whoever keeps many minions may hand in a map of these alone.
    pub fn grain_keys(&self) -> Option<Vec<&str>> {
        let mut keys = Vec::new();
        self.node.grain_keys(&mut keys)?;
        keys.sort_unstable();
        keys.dedup();
        Some(keys)
    }

    /// Ids of which everybody who can match has one, if the target names them: nobody else has to be asked. An id may come
    /// more than once.
    pub fn candidates(&self) -> Option<Vec<&str>> {
        self.node.candidates()
    }

    /// Whether the id alone decides.
    pub fn ids_only(&self) -> bool {
        self.needs == Needs::default()
    }

    /// The ids the target names one by one, in order and without repetition: those of a list target, and those of the
    /// `L@` words of a compound one that no `not` precedes. Those nobody has are the job's `missing`.
    pub fn listed(&self) -> Option<&[Arc<str>]> {
        self.listed.as_deref()
    }
}

/// One node of the compiled tree.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Glob(Glob),
    Pcre(Box<Regex>),
    List(HashSet<Arc<str>>),
    Grain(KeyValue),
    Pillar(KeyValue),
    Address(Address),
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
}

impl Node {
    pub(crate) fn all(terms: Vec<Node>) -> Self {
        Self::join(terms, Self::All)
    }

    pub(crate) fn any(terms: Vec<Node>) -> Self {
        Self::join(terms, Self::Any)
    }

    /// Terms have no side effects, so those that need only the id are asked first.
    fn join(mut terms: Vec<Node>, of: fn(Vec<Node>) -> Node) -> Self {
        terms.sort_by_key(Self::cost);
        match terms.len() {
            1 => terms.swap_remove(0),
            _ => of(terms),
        }
    }

    fn candidates(&self) -> Option<Vec<&str>> {
        match self {
            Self::List(ids) => Some(ids.iter().map(AsRef::as_ref).collect()),
            Self::All(terms) => terms.iter().filter_map(Self::candidates).min_by_key(Vec::len),
            Self::Any(terms) => {
                let of_each = terms.iter().map(Self::candidates).collect::<Option<Vec<_>>>()?;
                Some(of_each.into_iter().flatten().collect())
            }
            Self::Glob(_) | Self::Pcre(_) | Self::Grain(_) | Self::Pillar(_) | Self::Address(_) | Self::Not(_) => None,
        }
    }

    fn cost(&self) -> u8 {
        match self {
            Self::Glob(_) | Self::List(_) => 0,
            Self::Pcre(_) => 1,
            Self::Address(_) => 2,
            Self::Grain(_) => 3,
            Self::Pillar(_) => 4,
            Self::Not(inner) => inner.cost(),
            Self::All(terms) | Self::Any(terms) => terms.iter().map(Self::cost).max().unwrap_or(0),
        }
    }

    fn grain_keys<'n>(&'n self, keys: &mut Vec<&'n str>) -> Option<()> {
        match self {
            Self::Glob(_) | Self::Pcre(_) | Self::List(_) | Self::Pillar(_) => {}
            Self::Grain(target) => keys.push(target.top_key()?),
            Self::Address(address) => keys.push(address.grain()),
            Self::Not(inner) => inner.grain_keys(keys)?,
            Self::All(terms) | Self::Any(terms) => terms.iter().try_for_each(|term| term.grain_keys(keys))?,
        }
        Some(())
    }

    fn matches(&self, minion: &dyn Facts) -> bool {
        match self {
            Self::Glob(glob) => glob.matches(minion.id()),
            Self::Pcre(regex) => regex.matches(minion.id()),
            Self::List(ids) => ids.contains(minion.id()),
            Self::Grain(target) => minion.grains().is_some_and(|grains| target.matches(grains)),
            Self::Pillar(target) => minion.pillar().is_some_and(|pillar| target.matches(pillar)),
            Self::Address(address) => minion.grains().is_some_and(|grains| address.matches(grains)),
            Self::Not(inner) => !inner.matches(minion),
            Self::All(terms) => terms.iter().all(|term| term.matches(minion)),
            Self::Any(terms) => terms.iter().any(|term| term.matches(minion)),
        }
    }
}

/// What is gathered while a target is compiled.
#[derive(Default)]
pub(crate) struct Compiler {
    exact_pillar: bool,
    needs: Needs,
    listed: Vec<Arc<str>>,
    regexes: usize,
    /// How many `not` we are inside of
    pub(crate) negated: usize,
}

impl Compiler {
    fn target(&mut self, target: &Target, nodegroups: &Nodegroups) -> Result<Node, TargetError> {
        let kind = target.kind;
        let text = match (&target.expression, kind) {
            (Expression::List(ids), TargetType::List) => return Ok(self.list(ids.iter().map(String::as_str))),
            (Expression::Text(text), TargetType::List) => return Ok(self.list(text.split(','))),
            (Expression::List(words), TargetType::Compound | TargetType::CompoundPillarExact) => {
                let words = nodegroups.expand(words.iter().flat_map(|word| word.split_whitespace()))?;
                return compound::parse(&words, self);
            }
            (Expression::List(_), _) => {
                return Err(TargetError::WrongShape { kind: kind.as_str(), expected: "text" });
            }
            (Expression::Text(text), _) => text.as_str(),
        };
        if text.len() > MAX_EXPRESSION {
            return Err(TargetError::TooLarge { what: "a longer expression", limit: MAX_EXPRESSION });
        }
        if text.trim().is_empty() {
            return Err(TargetError::Empty);
        }
        match kind {
            TargetType::Glob => glob(text),
            TargetType::Pcre => self.pcre(text),
            TargetType::Grain => self.grain(text, target.delimiter, Reading::Glob),
            TargetType::GrainPcre => self.grain(text, target.delimiter, Reading::Regex),
            TargetType::Pillar => self.pillar(text, target.delimiter, Reading::Glob),
            // Minions split these two at `:` whatever delimiter was published.
            TargetType::PillarPcre => self.pillar(text, COLON, Reading::Regex),
            TargetType::PillarExact => self.pillar(text, COLON, Reading::Exact),
            TargetType::Ipcidr => self.address(text),
            TargetType::Compound | TargetType::CompoundPillarExact => {
                compound::parse(&nodegroups.expand(text.split_whitespace())?, self)
            }
            TargetType::Nodegroup => compound::parse(&nodegroups.expand([format!("N@{text}").as_str()])?, self),
            TargetType::Range => Err(TargetError::NotSupported { what: "range" }),
            TargetType::List => Ok(self.list(text.split(','))),
        }
    }

    /// One word of a compound expression.
    pub(crate) fn word(&mut self, engine: Option<Engine<'_>>, word: &str) -> Result<Node, TargetError> {
        let Some(Engine { letter, delimiter, pattern }) = engine else {
            return glob(word);
        };
        let delimiter = delimiter.unwrap_or(COLON);
        match letter {
            'G' => self.grain(pattern, delimiter, Reading::Glob),
            'P' => self.grain(pattern, delimiter, Reading::Regex),
            'I' | 'J' if self.exact_pillar => self.pillar(pattern, delimiter, Reading::Exact),
            'I' => self.pillar(pattern, delimiter, Reading::Glob),
            'J' => self.pillar(pattern, delimiter, Reading::Regex),
            'L' => Ok(self.list(pattern.split(','))),
            'S' => self.address(pattern),
            'E' => self.pcre(pattern),
            'R' => Err(TargetError::NotSupported { what: "range (`R@`)" }),
            'T' => Err(TargetError::NotSupported { what: "resource (`T@`)" }),
            'M' => Err(TargetError::NotSupported { what: "managing minion (`M@`)" }),
            // Expansion has replaced every `N@`.
            _ => Err(TargetError::UnknownNodegroup(pattern.to_owned())),
        }
    }

    /// Blanks around an id are part of it, so it is nobody's: as in Salt, a list is not trimmed.
    fn list<'i>(&mut self, ids: impl Iterator<Item = &'i str>) -> Node {
        let mut set = HashSet::new();
        for id in ids.filter(|id| !id.is_empty()) {
            let id: Arc<str> = id.into();
            if set.insert(Arc::clone(&id)) && self.negated == 0 {
                self.listed.push(id);
            }
        }
        Node::List(set)
    }

    fn pcre(&mut self, pattern: &str) -> Result<Node, TargetError> {
        self.count_regexes(1)?;
        let bad = |RegexFault { at, reason }| TargetError::BadRegex { pattern: pattern.to_owned(), at, reason };
        Ok(Node::Pcre(Box::new(Regex::at_start(pattern).map_err(bad)?)))
    }

    fn grain(&mut self, expression: &str, delimiter: char, reading: Reading) -> Result<Node, TargetError> {
        self.needs.grains = true;
        self.key_value(expression, delimiter, reading).map(Node::Grain)
    }

    fn pillar(&mut self, expression: &str, delimiter: char, reading: Reading) -> Result<Node, TargetError> {
        self.needs.pillar = true;
        self.key_value(expression, delimiter, reading).map(Node::Pillar)
    }

    fn key_value(&mut self, expression: &str, delimiter: char, reading: Reading) -> Result<KeyValue, TargetError> {
        if reading == Reading::Regex {
            self.count_regexes(1 + expression.matches([delimiter, COLON]).count())?;
        }
        KeyValue::compile(expression, delimiter, reading)
    }

    fn address(&mut self, text: &str) -> Result<Node, TargetError> {
        self.needs.grains = true;
        Address::parse(text).map(Node::Address)
    }

    fn count_regexes(&mut self, more: usize) -> Result<(), TargetError> {
        self.regexes += more;
        if self.regexes > MAX_REGEXES {
            return Err(TargetError::TooLarge { what: "more regular expressions", limit: MAX_REGEXES });
        }
        Ok(())
    }
}

fn glob(pattern: &str) -> Result<Node, TargetError> {
    if pattern.len() > MAX_PATTERN {
        return Err(TargetError::TooLarge { what: "a longer pattern", limit: MAX_PATTERN });
    }
    Ok(Node::Glob(Glob::new(pattern)))
}
