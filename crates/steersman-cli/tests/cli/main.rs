//! The real binary, run as people and scripts run it, each test in a home of its own.

mod data;
mod files;
mod home;
mod input;
mod plan;
mod trouble;
mod wisdom;
