//! The benchmark: the stock salt-master 3008 and `saltern serve` in turn, on loopback, under the same swarm and the same work.
//!
//! `make bench` builds what it needs and runs it; the numbers go into `docs/benchmarks.md`. With `stock`, `saltern`, `agent`,
//! `history`, `readers`, `chains` or `recurring` as an argument only that one is measured, and nothing is written; the last five
//! fail beyond their limits.
//!
//! Invariants: the same minions, the same jobs, the same time-outs for both; nothing is measured while something else of
//! ours runs; every step has an end, also for a master that never finishes it.

mod agent;
mod chains;
mod contender;
mod history;
mod machine;
mod measure;
mod page;
mod past;
mod readers;
mod recurring;

use anyhow::{Result, bail};
use contender::Which;
use measure::Measured;

fn main() -> Result<()> {
    machine::raise_open_files_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // `cargo bench` adds `--bench` to whatever it is told.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let names: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match names.as_slice() {
        [] => {
            let stock = runtime.block_on(measured(Which::Stock))?;
            let saltern = runtime.block_on(measured(Which::Saltern))?;
            let agent = runtime.block_on(agent::measure())?;
            page::write(&stock, &saltern, &agent)
        }
        ["stock"] => runtime.block_on(measured(Which::Stock)).map(drop),
        ["saltern"] => runtime.block_on(measured(Which::Saltern)).map(drop),
        ["agent"] => {
            let agent = runtime.block_on(agent::measure())?;
            println!("{agent:#?}");
            agent.check()
        }
        ["history"] => runtime.block_on(history::run()),
        ["readers"] => runtime.block_on(readers::run()),
        ["chains"] => runtime.block_on(chains::run()),
        ["recurring"] => runtime.block_on(recurring::run()),
        other => bail!("there is no phase `{}`", other.join(" ")),
    }
}

async fn measured(which: Which) -> Result<Measured> {
    let measured = measure::all(which).await?;
    println!("{measured:#?}");
    Ok(measured)
}
