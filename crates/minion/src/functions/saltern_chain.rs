//! `saltern_chain.*`: this machine's part of an action chain. What it does is in `crate::chain`.

use super::{Call, Failure, Function, Param};
use crate::chain::{Chain, Order};
use futures_util::FutureExt;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "saltern_chain.cancel",
        params: &[Param::Required("launch")],
        doc: "Begin nothing more of a launch, now or after a reboot. A step that is under way is finished.\n\n\
              CLI Example:\n\n    saltern run '*' saltern_chain.cancel 17\n",
        run: |call| async move { Ok(chain(&call).cancel(&call.text("launch")?, false).await) }.boxed(),
    },
    Function {
        name: "saltern_chain.clear",
        params: &[Param::Optional("launch", "None"), Param::Optional("force", "False")],
        doc: "Remove what is kept of a chunk that has ended; with force, of any that nobody works on. A damaged file is \
              renamed.\n\n\
              CLI Example:\n\n    saltern run '*' saltern_chain.clear 17\n    saltern run '*' saltern_chain.clear force=True\n",
        run: |call| {
            async move { Ok(chain(&call).clear(call.opt_text("launch")?.as_deref(), call.flag("force", false)).await) }
                .boxed()
        },
    },
    Function {
        name: "saltern_chain.resume",
        params: &[],
        doc: "Decide what became of the chunk while the agent was away, run what is left of it, and tell how it stands.\n\n\
              CLI Example:\n\n    saltern run '*' saltern_chain.resume\n",
        run: |call| async move { Ok(chain(&call).resume().await) }.boxed(),
    },
    Function {
        name: "saltern_chain.start",
        params: &[
            Param::Required("launch"),
            Param::Required("chunk"),
            Param::Required("steps"),
            Param::Optional("options", "None"),
        ],
        doc: "Run a chunk of an action chain. The same chunk is never run twice: a second start answers how far it got.\n\n\
              launch\n    id of the launch\n\
              chunk\n    its number, from 1\n\
              steps\n    list of maps: id, kind (call, check, reboot, update), fun, arg, kwarg, repeatable (may be run again if it \
              is interrupted), after (ok, failed, always), expect (what a check must return; none: anything will do)\n\
              options\n    failed: a step before this chunk has failed\n\n\
              CLI Example:\n\n    saltern run '*' saltern_chain.start 17 1 '[{\"id\": \"a\", \"fun\": \"test.ping\"}]'\n",
        run: |call| {
            async move {
                let steps = call.get("steps").cloned().unwrap_or_default();
                let order = Order::read(call.text("launch")?, call.int("chunk", 0)?, &steps, call.get("options"));
                Ok(chain(&call).start(order.map_err(Failure::Invocation)?).await)
            }
            .boxed()
        },
    },
    Function {
        name: "saltern_chain.status",
        params: &[],
        doc: "Tell how the chunk stands, without running or writing anything.\n\n\
              CLI Example:\n\n    saltern run '*' saltern_chain.status\n",
        run: |call| async move { Ok(chain(&call).status().await) }.boxed(),
    },
    Function {
        name: "saltern_chain.stop",
        params: &[Param::Required("launch")],
        doc: "Like cancel, and kill the step that is under way.\n\n\
              CLI Example:\n\n    saltern run '*' saltern_chain.stop 17\n",
        run: |call| async move { Ok(chain(&call).cancel(&call.text("launch")?, true).await) }.boxed(),
    },
];

fn chain(call: &Call) -> Chain {
    Chain::of(&call.context)
}
