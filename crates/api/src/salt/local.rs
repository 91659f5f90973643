//! Commands for minions: `local`, `local_async`, `local_subset`, `local_batch`.
//!
//! They go through the same door as everything else that is run. Whoever is known not to be connected is not waited for: one
//! machine that is off does not cost every `*` its timeout.

use super::call::Asker;
use super::error::{Failure, Voice};
use super::function::Call;
use super::lowdata::{self, Local, Low, Manner};
use super::{Salt, stamp};
use saltern_core::access::{Invocation, Wish};
use saltern_core::action::{Budget, OverBudget, Policy, Size};
use saltern_core::event;
use saltern_core::ids::{Jid, MinionId};
use saltern_core::target::Target;
use saltern_core::value::{Map, Value};
use saltern_server::app::{Accepted, ActionRequest, Door, MinionEntry, Patience, Progress, ReturnEntry, What};
use saltern_server::{Class, Error, Presence};
use std::collections::HashSet;
use std::time::Duration;

/// A command that may run.
pub(super) struct Ready {
    asker: Asker,
    command: Local,
    /// Nothing: it matches nobody
    request: Option<ActionRequest>,
    /// Minions of a batch that are away: they get no place in it
    away: Vec<MinionId>,
}

/// What came of a command.
struct Answers {
    jid: Option<Jid>,
    /// In the order in which they came
    returns: Vec<ReturnEntry>,
    silent: Vec<MinionId>,
    /// Names of a list target that no accepted minion has
    missing: Vec<String>,
}

/// Finds out whether a command may run, and on whom; nothing has happened yet.
pub(super) async fn prepare(salt: &Salt, asker: Asker, command: Local) -> Result<Ready, Failure> {
    let refused = |error: Error| asker.failure(error, Voice::Local);
    let Some(target) = &command.target else {
        allowed_anywhere(salt, &asker, &command).map_err(refused)?;
        return Ok(Ready { asker, command, request: None, away: Vec::new() });
    };
    let mut request = request(&command, target.clone());
    if let Manner::Subset(most) = command.manner {
        allowed_anywhere(salt, &asker, &command).map_err(refused)?;
        let picked = pick(salt, &asker, target, most).await.map_err(refused)?;
        if picked.is_empty() {
            return Ok(Ready { asker, command, request: None, away: Vec::new() });
        }
        request.target = Target::list(picked);
    }
    let meant = match salt.app.preview(&asker.caller, request.clone(), Door::SaltApi).await {
        Ok(minions) => minions,
        Err(error) if error.class() == Class::NotFound => {
            return Ok(Ready { asker, command, request: None, away: Vec::new() });
        }
        Err(error) => return Err(refused(error)),
    };
    let mut away = Vec::new();
    if matches!(command.manner, Manner::Batch { .. }) {
        // A machine that is off would keep its place until it is given up, and the others wait behind it.
        let there = within_reach(salt, &asker, &meant).await.map_err(refused)?;
        away = meant.iter().filter(|minion| !there.contains(*minion)).cloned().collect();
        if there.is_empty() {
            return Ok(Ready { asker, command, request: None, away });
        }
        if !away.is_empty() {
            let there = meant.iter().filter(|minion| there.contains(*minion));
            request.target = Target::list(there.map(MinionId::as_str));
        }
    }
    Ok(Ready { asker, command, request: Some(request), away })
}

/// Runs a command; what it adds to `return`: one element, or for batches one for each minion.
pub(super) async fn run(salt: &Salt, ready: Ready) -> Result<Vec<Value>, Failure> {
    let Ready { asker, command, request, away } = ready;
    let nobody = || match command.manner {
        Manner::Batch { .. } => away.iter().map(silent_element).collect(),
        Manner::Wait | Manner::Async | Manner::Subset(_) => vec![Value::Map(Map::new())],
    };
    let Some(request) = request else { return Ok(nobody()) };
    let accepted = match submit(salt, &asker, request).await {
        Ok(accepted) => accepted,
        // Whoever was there a moment ago is gone.
        Err(error) if error.class() == Class::NotFound => return Ok(nobody()),
        Err(error) => return Err(asker.failure(error, Voice::Local)),
    };
    if command.manner == Manner::Async {
        return Ok(vec![accepted_element(&accepted)]);
    }
    let mut answers =
        gather(salt, &asker, &command, accepted).await.map_err(|error| asker.failure(error, Voice::Local))?;
    answers.silent.extend(away);
    Ok(match command.manner {
        Manner::Batch { .. } => batch_elements(answers, command.full_return, command.raw),
        Manner::Wait | Manner::Async | Manner::Subset(_) => vec![element(answers, command.full_return)],
    })
}

/// Calls a function on minions for one of the server's own functions, and waits for the answers.
pub(super) async fn ask(
    call: &Call,
    tgt: Value,
    tgt_type: &str,
    fun: &str,
    args: Vec<Value>,
    kwargs: Map,
) -> Result<Value, Failure> {
    let low = Map::from_iter([
        ("client".into(), "local".into()),
        ("tgt".into(), tgt),
        ("tgt_type".into(), tgt_type.into()),
        ("fun".into(), fun.into()),
        ("arg".into(), Value::List(args)),
        ("kwarg".into(), Value::Map(kwargs)),
    ]);
    let Low::Local(command) = lowdata::read(&low, None)? else { return Ok(Value::Nil) };
    let asker = Asker { caller: call.caller.clone(), proof: call.proof };
    let elements = run(&call.salt, prepare(&call.salt, asker, command).await?).await?;
    Ok(elements.into_iter().next().unwrap_or_default())
}

fn allowed_anywhere(salt: &Salt, asker: &Asker, command: &Local) -> Result<(), Error> {
    let no_arguments = Vec::new();
    let no_names = Map::new();
    let calls: Vec<Invocation<'_>> = match command.funs.as_slice() {
        [fun] => vec![Invocation { fun, arg: &command.args, kwarg: &command.kwargs }],
        many => {
            let arguments = |n: usize| command.args.get(n).and_then(Value::as_list).unwrap_or(&no_arguments);
            let call = |(n, fun)| Invocation { fun, arg: arguments(n), kwarg: &no_names };
            many.iter().map(String::as_str).enumerate().map(call).collect()
        }
    };
    salt.app.may(&asker.caller, &Wish::Call { calls: &calls, minions: &[] })
}

/// Some of the connected minions of a target, by chance.
async fn pick(salt: &Salt, asker: &Asker, target: &Target, most: usize) -> Result<Vec<String>, Error> {
    let minions = salt.app.minions(&asker.caller, Some(target)).await?;
    let there = |presence: &Presence| matches!(presence, Presence::Present(_));
    let mut ids: Vec<String> =
        minions.iter().filter(|minion| there(&minion.presence)).map(|minion| minion.id.to_string()).collect();
    let taken = most.min(ids.len());
    for n in 0..taken {
        let other = n + random_below(ids.len() - n)?;
        ids.swap(n, other);
    }
    ids.truncate(taken);
    Ok(ids)
}

fn random_below(bound: usize) -> Result<usize, Error> {
    let random = getrandom::u64().map_err(|error| Error::Internal(format!("no randomness: {error}")))?;
    // 64 bits against a few thousand minions: the bias does not matter here.
    Ok(usize::try_from(random % bound.max(1) as u64).unwrap_or(0))
}

fn request(command: &Local, target: Target) -> ActionRequest {
    let (batch, budget) = match command.manner {
        Manner::Batch { batch, failhard } => {
            let stop = Budget { failures: Size::Count(0), unreachable: None, then: OverBudget::Stop };
            (Some(batch), failhard.then_some(stop))
        }
        Manner::Wait | Manner::Async | Manner::Subset(_) => (None, None),
    };
    ActionRequest {
        what: What::Function { funs: command.funs.clone(), args: command.args.clone(), kwargs: command.kwargs.clone() },
        target,
        name: None,
        // Somebody waits for it, so it does not queue behind large actions.
        policy: Policy { interactive: batch.is_none(), batch, budget, ..Policy::default() },
        due: None,
        deadline: None,
        metadata: command.metadata.clone(),
        ret: command.ret.clone(),
        paused: false,
        in_window: false,
    }
}

/// Hands it in, to the end, even if the client hangs up.
async fn submit(salt: &Salt, asker: &Asker, request: ActionRequest) -> Result<Accepted, Error> {
    let (app, caller) = (salt.app.clone(), asker.caller.clone());
    let work = async move { app.submit(&caller, request, Door::SaltApi).await };
    match tokio::spawn(work).await {
        Ok(accepted) => accepted,
        Err(error) => Err(Error::Internal(format!("the request was not finished: {error}"))),
    }
}

async fn gather(salt: &Salt, asker: &Asker, command: &Local, accepted: Accepted) -> Result<Answers, Error> {
    let Accepted { jid, minions, missing, .. } = accepted;
    let mut answers = Answers { jid, returns: Vec::with_capacity(minions.len()), silent: Vec::new(), missing };
    let mut open: HashSet<MinionId> = minions.iter().cloned().collect();
    if let Some(jid) = jid {
        let config = salt.app.config();
        let wait = Patience {
            silent: command.timeout.unwrap_or(config.timeout),
            gather: command.gather.unwrap_or(config.gather_job_timeout),
        };
        let mut watch = salt.app.watch(&asker.caller, jid, wait).await?;
        let mut awaited = within_reach(salt, asker, &minions).await?;
        while !awaited.is_empty() {
            match watch.next().await {
                Some(Ok(Progress::Returned(entry))) => {
                    awaited.remove(&entry.minion);
                    if open.remove(&entry.minion) {
                        answers.returns.push(*entry);
                    }
                }
                Some(Ok(Progress::Acked(_))) => {}
                Some(Ok(Progress::Done(_))) | None => break,
                Some(Err(error)) => return Err(error),
            }
        }
    }
    answers.silent = minions.into_iter().filter(|minion| open.contains(minion)).collect();
    Ok(answers)
}

/// How long after the start of the server a minion that was connected before may still be on its way back.
const RETURN: Duration = Duration::from_secs(60);

/// Those that may answer: the connected ones, and for a while after a start those that may come back.
async fn within_reach(salt: &Salt, asker: &Asker, minions: &[MinionId]) -> Result<HashSet<MinionId>, Error> {
    let target = Target::list(minions.iter().map(MinionId::as_str));
    let entries = salt.app.minions(&asker.caller, Some(&target)).await?;
    let is_young = salt.counters.up() < RETURN;
    let may_answer = |entry: &MinionEntry| match entry.presence {
        Presence::Present(_) => true,
        // Where it connects from is not known of one that never did.
        Presence::Unknown => is_young && entry.address.is_some(),
        Presence::Absent(_) => false,
    };
    Ok(entries.into_iter().filter(may_answer).map(|entry| entry.id).collect())
}

fn accepted_element(accepted: &Accepted) -> Value {
    let minions = Value::List(accepted.minions.iter().map(Value::from).collect());
    Value::map([("jid", accepted.jid.map(Value::from).unwrap_or_default()), ("minions", minions)])
}

fn element(answers: Answers, full_return: bool) -> Value {
    let mut element = Map::with_capacity(answers.returns.len() + answers.silent.len() + answers.missing.len());
    let jid = answers.jid.map(Value::from).unwrap_or_default();
    for entry in answers.returns {
        element.push(&entry.minion, value(&entry, full_return, &jid));
    }
    for minion in &answers.silent {
        element.push(minion, false);
    }
    for name in answers.missing {
        let text = no_answer(&jid);
        let told = if full_return {
            Value::map([("out", Value::from("no_return")), ("ret", text), ("retcode", 1.into())])
        } else {
            text
        };
        element.push(name, told);
    }
    Value::Map(element)
}

fn batch_elements(answers: Answers, full_return: bool, raw: bool) -> Vec<Value> {
    let jid = answers.jid.map(Value::from).unwrap_or_default();
    let of = |entry: ReturnEntry| match (raw, answers.jid) {
        (true, Some(jid)) => {
            let tag = event::tag::job_ret(jid, &entry.minion);
            let mut data = entry.load;
            stamp::restamp(&mut data);
            Value::map([("data", data), ("tag", tag.into())])
        }
        _ => Value::map([(Value::from(&entry.minion), value(&entry, full_return, &jid))]),
    };
    let returns = answers.returns.into_iter().map(of);
    returns.chain(answers.silent.iter().map(silent_element)).collect()
}

fn silent_element(minion: &MinionId) -> Value {
    Value::map([(Value::from(minion), Value::from(false))])
}

fn value(entry: &ReturnEntry, full_return: bool, jid: &Value) -> Value {
    if !full_return {
        return entry.value.clone();
    }
    let mut full = Map::new();
    full.push("ret", entry.value.clone());
    if let Some(out) = entry.load.get("out") {
        full.push("out", out.clone());
    }
    // A function may make it text: then it stays text.
    full.push("retcode", entry.load.get("retcode").cloned().unwrap_or_else(|| entry.retcode.into()));
    full.push("jid", jid.clone());
    Value::Map(full)
}

/// What is said of a name in a list that nobody has.
fn no_answer(jid: &Value) -> Value {
    let jid = jid.key_text();
    format!(
        "Minion did not return. [No response]\nThe minions may not have all finished running and any remaining minions \
         will return upon completion. To look up the return data for this job later, run the following command:\n\n\
         salt-run jobs.lookup_jid {jid}"
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use saltern_core::time::Timestamp;

    fn returned(minion: &str, value: Value, load: &str) -> ReturnEntry {
        ReturnEntry {
            minion: MinionId::new(minion).unwrap(),
            at: Timestamp(0),
            retcode: 0,
            success: true,
            value,
            load: serde_json::from_str(load).unwrap(),
        }
    }

    fn answers() -> Answers {
        Answers {
            jid: Jid::parse("20261115185110946265"),
            returns: vec![
                returned("web1", true.into(), r#"{"retcode": 0, "_stamp": "2026-11-15T18:53:24.462503+00:00"}"#),
                returned("db1", "'x.y' is not available.".into(), r#"{"retcode": 1, "out": "nested"}"#),
            ],
            silent: vec![MinionId::new("ghost1").unwrap()],
            missing: vec!["nosuch".into()],
        }
    }

    fn check(got: &Value, expected: &str) {
        assert_eq!(serde_json::to_string(got).unwrap(), expected);
    }

    #[test]
    fn a_plain_answer_is_the_value_and_false_for_the_silent() {
        let mut answers = answers();
        answers.missing.clear();
        check(&element(answers, false), r#"{"web1":true,"db1":"'x.y' is not available.","ghost1":false}"#);
    }

    #[test]
    fn a_full_answer_has_the_exit_code_and_the_job() {
        let mut answers = answers();
        answers.missing.clear();
        check(
            &element(answers, true),
            r#"{"web1":{"ret":true,"retcode":0,"jid":"20261115185110946265"},"db1":{"ret":"'x.y' is not available.","out":"nested","retcode":1,"jid":"20261115185110946265"},"ghost1":false}"#,
        );
    }

    #[test]
    fn a_name_that_nobody_has_is_told_in_words() {
        let got = element(answers(), false);
        let text = got.get("nosuch").and_then(Value::as_str).unwrap();
        assert!(text.starts_with("Minion did not return. [No response]\n"), "{text}");
        assert!(text.ends_with("salt-run jobs.lookup_jid 20261115185110946265"), "{text}");
        assert_eq!(element(answers(), true).get("nosuch").unwrap().get("out"), Some(&"no_return".into()));
    }

    #[test]
    fn a_batch_answers_minion_by_minion() {
        let got = Value::List(batch_elements(answers(), false, false));
        check(&got, r#"[{"web1":true},{"db1":"'x.y' is not available."},{"ghost1":false}]"#);
    }

    #[test]
    fn a_raw_batch_gives_the_events() {
        let got = batch_elements(answers(), false, true);
        check(
            &got[0],
            r#"{"data":{"retcode":0,"_stamp":"2026-11-15T18:53:24.462503"},"tag":"salt/job/20261115185110946265/ret/web1"}"#,
        );
    }

    #[test]
    fn an_async_answer_has_exactly_two_keys() {
        let accepted = Accepted {
            jid: Jid::parse("20261115185303013263"),
            action: saltern_core::ids::ActionId(7),
            minions: vec![MinionId::new("web1").unwrap()],
            missing: vec!["x".into()],
        };
        check(&accepted_element(&accepted), r#"{"jid":"20261115185303013263","minions":["web1"]}"#);
    }
}
