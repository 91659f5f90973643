//! Both masters under the same swarm: a scratch driver.
mod contender;
mod machine;
use contender::{Contender, Which};
use saltern_swarm::{Acks, Options, Swarm};
use std::time::Duration;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    saltern_swarm::raise_open_files_limit();
    let args: Vec<String> = std::env::args().collect();
    let which = if args[1] == "stock" { Which::Stock } else { Which::Saltern };
    let n: usize = args[2].parse()?;
    let rate: f64 = args[3].parse()?;
    let full = args[4] == "full";
    let secs: u64 = args[5].parse()?;
    let at_once: usize = args[6].parse()?;
    println!("{}", machine::description());
    let c = Contender::start(which).await?;
    println!("base {} MiB", machine::memory_bytes(c.group()) >> 20);
    let t0 = machine::cpu_seconds(c.group());
    let swarm = Swarm::start(Options { ret_port: c.ret_port(), count: n, sign_in_rate: rate, pillar: full, start_event: full, acks: Acks::Never, ..Options::default() }).await?;
    println!("ready {}", swarm.all_ready(Duration::from_secs(90)).await);
    let r = swarm.report();
    println!("{:?} server cpu {} own {:?} {:?} mem {} MiB", r.sign_in, machine::cpu_seconds(c.group()) - t0, r.usage, r.errors, machine::memory_bytes(c.group()) >> 20);
    for _ in 0..3 {
        let t0 = machine::cpu_seconds(c.group());
        let jid = c.publish("*").await?;
        let ok = swarm.job_finished(&jid, Duration::from_secs(60)).await;
        println!("{ok} {:?} cpu {}", swarm.job(&jid), machine::cpu_seconds(c.group()) - t0);
    }
    let t0 = machine::cpu_seconds(c.group());
    let u0 = swarm.report().usage;
    let peak = machine::Peak::watch(c.group());
    let flood = swarm.flood(Duration::from_secs(secs), at_once, || async { c.publish("*").await.is_ok() }).await;
    let t1 = machine::cpu_seconds(c.group());
    let u1 = swarm.report().usage;
    println!("{flood:?} peak {} MiB server cpu {:.2} own user {:.2} sys {:.2}", peak.stop() >> 20, t1 - t0, u1.user_s - u0.user_s, u1.system_s - u0.system_s);
    println!("per 1000: server {:.4}", (t1 - t0) / flood.returns as f64 * 1000.0);
    let r = swarm.stop().await;
    println!("{:?} {:?} {:?}", r.latency_ms, r.errors, r.jobs);
    Ok(())
}
