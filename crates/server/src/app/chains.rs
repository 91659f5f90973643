//! Chains: templates that their owners make, share and launch. What a launch became is in `launches`.

use super::{App, Caller, StateDraft, StateEntry};
use crate::engine::{agent, in_step};
use crate::{Error, clock};
use saltern_core::access::{Sight, Thing, Wish, narrow_target};
use saltern_core::chain::{Agent, Step, StepKind, check_all, check_name, compile};
use saltern_core::ids::ChainId;
use saltern_core::target::TargetType;
use saltern_store::{Chain, Written};

/// A chain as somebody wants it.
#[derive(Clone, Debug)]
pub struct ChainDraft {
    /// Its name, of which its owner has one
    pub name: String,
    /// What it is for
    pub description: String,
    /// Whether others of the organisation see it and may launch it
    pub shared: bool,
    /// What it does
    pub steps: Vec<Step>,
}

/// Most chains in one answer.
const PAGE: usize = 1_000;
/// Most characters of a description.
const LONGEST_DESCRIPTION: usize = 10_000;
/// Most chains of one person.
const MOST_OWN: i64 = 1_000;
/// Characters of all their steps together, from which on he makes no more.
const MOST_SIZE: i64 = 16 << 20;
/// Chains that are read at once, of which each may be large.
const AT_ONCE: usize = 50;
/// How often a step is added anew if somebody else has changed the chain meanwhile.
const TRIES: usize = 10;

impl App {
    /// The chains he may use, after this one in the order of their numbers.
    pub async fn chains(&self, caller: &Caller, after: ChainId, limit: usize) -> Result<Vec<Chain>, Error> {
        let limit = limit.clamp(1, PAGE);
        let (mut after, mut found) = (after, Vec::new());
        loop {
            let page = self.master.store.chains(after, AT_ONCE).await?;
            let Some(last) = page.last().map(|chain| chain.id) else { return Ok(found) };
            after = last;
            let page = page.into_iter().filter(|chain| self.uses(caller, chain));
            found.extend(page.map(|chain| self.chain_as_seen(caller, chain)));
            if found.len() >= limit {
                found.truncate(limit);
                return Ok(found);
            }
        }
    }

    /// One chain, by its number or its name: his own first, then what others share.
    pub async fn chain(&self, caller: &Caller, which: &str) -> Result<Chain, Error> {
        let none = || Error::NotFound(format!("there is no chain {which:?}"));
        if let Some(id) = which.parse().ok().map(ChainId)
            && let Some(chain) = self.master.store.chain(id).await?.filter(|chain| self.uses(caller, chain))
        {
            return Ok(self.chain_as_seen(caller, chain));
        }
        let mut named = self.master.store.chains_named(which).await?;
        named.retain(|chain| self.uses(caller, chain));
        if let Some(own) = named.iter().position(|chain| chain.owner == caller.who) {
            return Ok(named.swap_remove(own));
        }
        match named.as_slice() {
            [] => Err(none()),
            [_] => Ok(self.chain_as_seen(caller, named.swap_remove(0))),
            several => {
                let those: Vec<String> =
                    several.iter().map(|chain| format!("{} (of {})", chain.id, chain.owner)).collect();
                Err(Error::Conflict(format!("several chains are called {which:?}, use a number: {}", those.join(", "))))
            }
        }
    }

    /// Makes a chain. It belongs to him.
    pub async fn create_chain(&self, caller: &Caller, draft: ChainDraft) -> Result<Chain, Error> {
        let org = caller.rights.org.clone();
        self.may(caller, &Wish::Manage(Thing::Chain { org: &org, owner: &caller.who }))?;
        self.check_draft(caller, &draft, None).await?;
        self.check_number(caller).await?;
        let now = clock::now();
        let chain = Chain {
            id: ChainId(0),
            name: draft.name,
            owner: caller.who.clone(),
            org,
            description: draft.description,
            shared: draft.shared,
            steps: write(&draft.steps),
            created: now,
            changed: now,
            changed_by: caller.who.clone(),
            version: 0,
        };
        let audit = caller.audit("chain.create", &chain.name, serde_json::json!({ "steps": draft.steps.len() }));
        let name = chain.name.clone();
        let Some(id) = self.master.store.create_chain(chain, audit).await? else { return Err(taken(&name)) };
        self.chain(caller, &id.to_string()).await
    }

    /// Changes a chain that is at version `expected`. Launches that were made from it stay as they are.
    pub async fn put_chain(
        &self,
        caller: &Caller,
        id: ChainId,
        draft: ChainDraft,
        expected: i64,
    ) -> Result<Chain, Error> {
        let before = self.chain_to_change(caller, id).await?;
        self.check_draft(caller, &draft, Some(&before)).await?;
        let steps = write(&draft.steps);
        if steps.len() > before.steps.len() {
            let (own, size) = self.master.store.chains_kept(&before.owner).await?;
            check_size(own, size + i64::try_from(steps.len() - before.steps.len()).unwrap_or(i64::MAX >> 1))?;
        }
        let audit = caller.audit("chain.change", &draft.name, serde_json::json!({ "steps": draft.steps.len() }));
        let name = draft.name.clone();
        let chain = Chain {
            name: draft.name,
            description: draft.description,
            shared: draft.shared,
            steps,
            changed: clock::now(),
            changed_by: caller.who.clone(),
            ..before
        };
        match self.master.store.put_chain(chain, expected, audit).await? {
            Written::Done(_) => self.chain(caller, &id.to_string()).await,
            Written::Exists => Err(taken(&name)),
            Written::Missing => Err(Error::NotFound(format!("there is no chain {id}"))),
            Written::Stale(version) => Err(stale(id, version)),
        }
    }

    /// Removes a chain. Launches that were made from it stay.
    pub async fn delete_chain(&self, caller: &Caller, id: ChainId, expected: i64) -> Result<(), Error> {
        let chain = self.chain_to_change(caller, id).await?;
        let audit = caller.audit("chain.delete", &chain.name, serde_json::json!({ "owner": chain.owner }));
        match self.master.store.delete_chain(id, expected, audit).await? {
            Written::Done(_) => Ok(()),
            Written::Stale(version) => Err(stale(id, version)),
            Written::Exists | Written::Missing => Err(Error::NotFound(format!("there is no chain {id}"))),
        }
    }

    /// Adds a step, at the end or before the one at this place, which begins at 1. Whoever adds at the same time is added, too.
    pub async fn add_step(
        &self,
        caller: &Caller,
        id: ChainId,
        step: Step,
        place: Option<usize>,
    ) -> Result<Chain, Error> {
        let mut last = None;
        for _ in 0..TRIES {
            let chain = self.chain_to_change(caller, id).await?;
            let mut draft = draft_of(&chain)?;
            let place = place.unwrap_or(draft.steps.len() + 1);
            if place == 0 || place > draft.steps.len() + 1 {
                return Err(Error::Invalid(format!(
                    "there is no place {place}: the chain has {} steps, and places begin at 1",
                    draft.steps.len()
                )));
            }
            draft.steps.insert(place - 1, step.clone());
            match self.put_chain(caller, id, draft, chain.version).await {
                Err(error @ Error::Stale(_)) => last = Some(error),
                done => return done,
            }
        }
        Err(last.unwrap_or_else(|| Error::Stale(format!("chain {id} is being changed by others"))))
    }

    /// Keeps what a chain does as a state of the catalogue. A state cannot wait for a machine or a person, so a chain that does has
    /// to stay one.
    pub async fn save_chain_as_state(
        &self,
        caller: &Caller,
        id: ChainId,
        name: String,
        expected: Option<i64>,
    ) -> Result<StateEntry, Error> {
        let chain = self.chain(caller, &id.to_string()).await?;
        let steps = steps_of(&chain)?;
        let numbered: Vec<(usize, &Step)> = steps.iter().enumerate().map(|(index, step)| (index + 1, step)).collect();
        let refuse = |number, why: &str| Err(Error::Invalid(format!("step {number}: {why}")));
        for (number, step) in &numbered {
            if step.is_gated() {
                return refuse(number, "a state cannot wait for other minions or for a yes");
            }
        }
        let plan =
            compile(&numbered, Agent::Stock).map_err(|error| in_step(error.step, Error::Invalid(error.reason)))?;
        if let Some(step) = plan.steps().find(|step| step.kind != StepKind::Call) {
            return refuse(&step.number, "a state cannot wait until the machine or its agent is back");
        }
        if plan.chunks.is_empty() {
            return Err(Error::Invalid(format!("chain {:?} has no steps yet", chain.name)));
        }
        let content = plan.to_sls(&format!("saved from the chain {:?}", chain.name));
        let description = format!("saved from the chain {:?}", chain.name);
        self.put_state(caller, StateDraft { name, org: None, description, content }, expected).await
    }

    async fn chain_to_change(&self, caller: &Caller, id: ChainId) -> Result<Chain, Error> {
        let found = self.master.store.chain(id).await?.filter(|chain| self.uses(caller, chain));
        let chain = found.ok_or_else(|| Error::NotFound(format!("there is no chain {id}")))?;
        self.may(caller, &Wish::Manage(Thing::Chain { org: &chain.org, owner: &chain.owner }))?;
        Ok(chain)
    }

    /// Nobody fills the server with chains. Who has no role could launch none.
    async fn check_number(&self, caller: &Caller) -> Result<(), Error> {
        if !caller.rights.has_role {
            return Err(Error::Forbidden("chains are made by people with a role".into()));
        }
        let (own, size) = self.master.store.chains_kept(&caller.who).await?;
        check_size(own + 1, size)
    }

    /// A chain as somebody sees it who may only use it: without the names of minions that he does not see.
    fn chain_as_seen(&self, caller: &Caller, mut chain: Chain) -> Chain {
        let manages = self.may(caller, &Wish::Manage(Thing::Chain { org: &chain.org, owner: &chain.owner })).is_ok();
        if manages || *caller.sight() == Sight::All {
            return chain;
        }
        let Ok(mut steps) = steps_of(&chain) else { return chain };
        for target in steps.iter_mut().filter_map(|step| step.target.as_mut()) {
            narrow_target(&target.kind, &mut target.expression, caller.sight());
        }
        chain.steps = write(&steps);
        chain
    }

    fn uses(&self, caller: &Caller, chain: &Chain) -> bool {
        let Chain { org, owner, shared, .. } = chain;
        self.may(caller, &Wish::UseChain { org, owner, shared: *shared }).is_ok()
    }

    /// Refuses what can be known to be wrong. Steps that were there before have been checked before.
    async fn check_draft(&self, caller: &Caller, draft: &ChainDraft, before: Option<&Chain>) -> Result<(), Error> {
        let invalid = |error: saltern_core::chain::BadStep| Error::Invalid(error.to_string());
        check_name(&draft.name).map_err(invalid)?;
        if draft.description.chars().count() > LONGEST_DESCRIPTION {
            return Err(Error::Invalid(format!("a description has at most {LONGEST_DESCRIPTION} characters")));
        }
        // A chain may be made first and filled later; what is launched has steps.
        if !draft.steps.is_empty() {
            check_all(&draft.steps).map_err(invalid)?;
        }
        let known = before.map(steps_of).transpose()?.unwrap_or_default();
        for (index, step) in draft.steps.iter().enumerate().filter(|(_, step)| !known.contains(step)) {
            self.check_on_minions(caller, step).await.map_err(|error| in_step(index + 1, error))?;
        }
        Ok(())
    }

    /// Where a step names its minions, whether it can be done there is known now.
    async fn check_on_minions(&self, caller: &Caller, step: &Step) -> Result<(), Error> {
        let Some(target) = &step.target else { return Ok(()) };
        if target.group().is_some() {
            return Ok(());
        }
        let target = target.target().map_err(|error| Error::Invalid(error.to_string()))?;
        target.compile(&self.master.config.nodegroups).map_err(|error| Error::Invalid(error.to_string()))?;
        if target.kind != TargetType::List {
            return Ok(());
        }
        let (members, _) = self.master.resolve(&target).await?;
        for member in members.iter().filter(|member| caller.sight().sees(&member.id)) {
            if let Err(error) = compile(&[(1, step)], agent(member)) {
                return Err(Error::Invalid(format!("it cannot be done on {}: {}", member.id, error.reason)));
            }
        }
        Ok(())
    }
}

/// The steps of a chain.
pub fn steps_of(chain: &Chain) -> Result<Vec<Step>, Error> {
    serde_json::from_str(&chain.steps)
        .map_err(|_| Error::Internal(format!("chain {} cannot be read: its steps are broken", chain.id)))
}

/// A chain as a draft of itself.
pub fn draft_of(chain: &Chain) -> Result<ChainDraft, Error> {
    Ok(ChainDraft {
        name: chain.name.clone(),
        description: chain.description.clone(),
        shared: chain.shared,
        steps: steps_of(chain)?,
    })
}

fn write(steps: &[Step]) -> String {
    serde_json::to_string(steps).unwrap_or_default()
}

fn check_size(chains: i64, size: i64) -> Result<(), Error> {
    if chains <= MOST_OWN && size <= MOST_SIZE {
        return Ok(());
    }
    Err(Error::Conflict(format!(
        "it would be {chains} chains of one person with steps of {size} characters, which may be {MOST_OWN} and {MOST_SIZE}: \
         delete some"
    )))
}

fn taken(name: &str) -> Error {
    Error::Conflict(format!("you have a chain called {name:?} already"))
}

fn stale(id: ChainId, version: i64) -> Error {
    Error::Stale(format!("chain {id} was changed meanwhile, it is at version {version} now; look again"))
}
