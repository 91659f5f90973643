//! ZMTP against recorded bytes, against itself, against hostile peers and against libzmq.

mod clients;
mod frames;
mod hostile;
mod interop;
mod publisher;
mod replier;
mod support;
mod vectors;
