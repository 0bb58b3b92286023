//! The engine's promises, proven on simulated devices: scripted costs, scripted noise, virtual time.

mod budget;
mod default;
mod failure;
mod frozen;
mod interval;
mod places;
mod simulated;
mod slowdown;
mod steady;
