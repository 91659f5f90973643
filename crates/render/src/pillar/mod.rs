//! Pillar for one minion: top files, SLS files, includes, merging.
//!
//! [`Compiler::compile`] does what a stock master does for `_pillar`: it says which SLS files are for the minion, renders
//! them one after the other and merges the results. It never fails as a whole: what went wrong is in the pillar's
//! `_errors`, in Salt's words, because that is where state runs on the minion look for it; the details are beside, for
//! the log.
//!
//! Invariants: the same files and the same request give the same pillar; nothing a minion sends chooses a file outside
//! the roots; an error is never dropped.
//!
//! Not here: external pillar, decryption, and remembering the result (`server`).

mod compile;

use std::sync::Arc;

use saltern_core::value::Map;

use crate::error::Error;
use crate::fileserver::FileRoots;
use crate::jinja::{Engine, Limits, Whitespace};
use crate::merge::Strategy;
use crate::sls::Renderer;
use crate::targets::Matches;

/// How pillar is made. The names are Salt's.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `pillar_source_merging_strategy`
    pub merging: Strategy,
    /// `pillar_merge_lists`
    pub merge_lists: bool,
    /// `pillar_includes_override_sls`
    pub includes_override_sls: bool,
    /// `pillarenv_from_saltenv`
    pub pillarenv_from_saltenv: bool,
    /// `pillar_safe_render_error`: whether the minion is told only that, not why, an SLS failed.
    pub safe_render_error: bool,
    /// `pillarenv`, for minions that do not name one
    pub pillarenv: Option<String>,
    /// `saltenv`, for minions that do not name one
    pub saltenv: Option<String>,
    /// `env_order`
    pub env_order: Vec<String>,
    /// `state_top`, below the root
    pub top: String,
    /// `renderer`
    pub renderer: String,
    /// `jinja_sls_env`
    pub whitespace: Whitespace,
    /// How much one template may do
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            merging: Strategy::Smart,
            merge_lists: false,
            includes_override_sls: false,
            pillarenv_from_saltenv: false,
            safe_render_error: true,
            pillarenv: None,
            saltenv: None,
            env_order: Vec::new(),
            top: "top.sls".to_owned(),
            renderer: "jinja|yaml".to_owned(),
            whitespace: Whitespace::default(),
            limits: Limits::default(),
        }
    }
}

/// Whose pillar, and what it may depend on.
#[derive(Clone)]
pub struct Request<'a> {
    /// The minion
    pub id: &'a str,
    /// Its grains: said by the minion itself, so never a reason to hand out a secret
    pub grains: &'a Map,
    /// The environment it asks for
    pub saltenv: Option<&'a str>,
    /// The pillar environment it asks for
    pub pillarenv: Option<&'a str>,
    /// `pillar=` of a job, merged over the result
    pub pillar_override: Option<&'a Map>,
    /// What templates see as `opts`; `id`, `grains`, `saltenv` and `pillarenv` are set here
    pub opts: &'a Map,
    /// Whether a target is this minion
    pub matches: Matches,
}

/// A compiled pillar.
#[derive(Clone, Default)]
pub struct Pillar {
    /// The pillar as the minion gets it, with `_errors` if there are any
    pub value: Map,
    /// The errors as the minion gets them
    pub errors: Vec<String>,
    /// The errors with all details, for the log
    pub details: Vec<String>,
}

impl std::fmt::Debug for Pillar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Pillar is where the secrets are.
        f.debug_struct("Pillar").field("keys", &self.value.len()).field("errors", &self.errors).finish_non_exhaustive()
    }
}

/// Makes pillars out of `pillar_roots`. Keeps what it parsed; share one among all threads.
pub struct Compiler {
    roots: Arc<FileRoots>,
    renderer: Renderer,
    settings: Settings,
}

impl Compiler {
    /// A compiler over `pillar_roots`.
    pub fn new(roots: Arc<FileRoots>, settings: Settings) -> Result<Self, Error> {
        let engine = Engine::new(Arc::clone(&roots), settings.limits, settings.whitespace);
        let renderer = Renderer::new(engine, &settings.renderer)?;
        Ok(Self { roots, renderer, settings })
    }

    /// The pillar of one minion.
    pub fn compile(&self, request: &Request<'_>) -> Pillar {
        compile::compile(self, request)
    }
}
