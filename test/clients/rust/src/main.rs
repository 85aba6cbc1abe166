//! Workloads of Rust's drivers.
//!
//! pgnetlat-clients DRIVER --list       the names of the driver's cases
//! pgnetlat-clients DRIVER CASE...      run them, each as a role of its own

mod with_sqlx;
mod with_tokio_postgres;

use std::error::Error;

pub type Outcome = Result<(), Box<dyn Error>>;

pub const SELECT: &str = "SELECT payload FROM item WHERE id = $1";
pub const INSERT: &str = "INSERT INTO sink VALUES ($1, $2)";
pub const THINK: std::time::Duration = std::time::Duration::from_millis(30);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let tokio_postgres = arguments[1] == "tokio_postgres";
    let cases = if tokio_postgres { with_tokio_postgres::CASES } else { with_sqlx::CASES };
    if arguments[2] == "--list" {
        println!("{}", cases.join("\n"));
        return;
    }
    let prefix = std::env::var("DRIVER").unwrap_or_default();
    for name in &arguments[2..] {
        let role = format!("{prefix}_{name}");
        let outcome = if tokio_postgres {
            with_tokio_postgres::run(name, &role).await
        } else {
            with_sqlx::run(name, &role).await
        };
        match outcome {
            Ok(()) => println!("done {name}"),
            Err(error) => println!("error {name}: {error}"),
        }
    }
}

/// Where the server is, by the environment.
pub fn server() -> (String, u16) {
    (std::env::var("PGHOST").unwrap(), std::env::var("PGPORT").unwrap().parse().unwrap())
}
