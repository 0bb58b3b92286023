//! The engine's promises, proven on simulated devices: scripted costs, scripted noise, virtual time.

mod budget;
mod calibration;
mod clock;
mod default;
mod distance;
mod failure;
mod frozen;
mod interval;
mod outdone;
mod overridden;
mod places;
mod simulated;
mod slowdown;
mod steady;
