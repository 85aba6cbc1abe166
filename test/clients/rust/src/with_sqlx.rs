//! sqlx.

use crate::{server, Outcome, INSERT, SELECT, THINK};
use futures_util::TryStreamExt;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use sqlx::{Connection, Executor, PgConnection, Row};

pub const CASES: &[&str] = &[
    "query", "fetch_one", "fetch_optional", "not_persistent", "raw_sql", "execute", "transaction", "rolled_back",
    "copy_in", "copy_out", "large_result", "large_parameter", "think", "n_plus_one", "errors", "pool",
    "short_connections",
];

fn options(role: &str) -> PgConnectOptions {
    let (host, port) = server();
    PgConnectOptions::new_without_pgpass()
        .host(&host).port(port).username(role).database("postgres").application_name(role)
        .ssl_mode(PgSslMode::Disable)
}

pub async fn run(name: &str, role: &str) -> Outcome {
    match name {
        "pool" => {
            let pool = PgPoolOptions::new().max_connections(1).connect_with(options(role)).await?;
            for i in 0..10i32 {
                sqlx::query(SELECT).bind(i).fetch_all(&pool).await?;
            }
            pool.close().await;
        }
        "short_connections" => {
            for _ in 0..10 {
                let mut c = PgConnection::connect_with(&options(role)).await?;
                sqlx::query("SELECT 1").fetch_all(&mut c).await?;
                c.close().await?;
            }
        }
        _ => {
            let mut c = PgConnection::connect_with(&options(role)).await?;
            let result = work(name, &mut c).await;
            c.close().await?;
            result?;
        }
    }
    Ok(())
}

async fn work(name: &str, c: &mut PgConnection) -> Outcome {
    match name {
        "query" => {
            for i in 0..20i32 {
                sqlx::query(SELECT).bind(i).fetch_all(&mut *c).await?;
            }
        }
        "fetch_one" => {
            for i in 0..20i32 {
                sqlx::query(SELECT).bind(i).fetch_one(&mut *c).await?;
            }
        }
        "fetch_optional" => {
            for i in 0..10i32 {
                sqlx::query("SELECT id FROM item WHERE id > $1").bind(i).fetch_optional(&mut *c).await?;
            }
        }
        "not_persistent" => {
            for i in 0..10i32 {
                sqlx::query(SELECT).bind(i).persistent(false).fetch_all(&mut *c).await?;
            }
        }
        "raw_sql" => {
            for _ in 0..10 {
                c.execute(sqlx::raw_sql("SELECT 1; SELECT 2")).await?;
            }
        }
        "execute" => {
            for i in 0..10i32 {
                sqlx::query(INSERT).bind(i).bind("x").execute(&mut *c).await?;
            }
        }
        "transaction" => {
            for _ in 0..3 {
                let mut transaction = c.begin().await?;
                for i in 0..5i32 {
                    sqlx::query(INSERT).bind(i).bind("x").execute(&mut *transaction).await?;
                }
                transaction.commit().await?;
            }
        }
        "rolled_back" => {
            for _ in 0..3 {
                let mut transaction = c.begin().await?;
                sqlx::query(INSERT).bind(1i32).bind("x").execute(&mut *transaction).await?;
                drop(transaction);
            }
            sqlx::query("SELECT 1").fetch_all(&mut *c).await?;
        }
        "copy_in" => {
            for _ in 0..10 {
                let mut copy = c.copy_in_raw("COPY sink FROM STDIN").await?;
                copy.send(&b"1\tx\n2\tx\n"[..]).await?;
                copy.finish().await?;
            }
        }
        "copy_out" => {
            for _ in 0..3 {
                let mut stream = c.copy_out_raw("COPY item TO STDOUT").await?;
                while stream.try_next().await?.is_some() {}
            }
        }
        "large_result" => {
            for _ in 0..3 {
                let mut rows = sqlx::query("SELECT repeat('x', 1000) FROM generate_series(1, 2000)").fetch(&mut *c);
                while rows.try_next().await?.is_some() {}
            }
        }
        "large_parameter" => {
            for _ in 0..3 {
                sqlx::query("SELECT length($1)").bind("x".repeat(1_000_000)).fetch_all(&mut *c).await?;
            }
        }
        "think" => {
            for i in 0..10i32 {
                tokio::time::sleep(THINK).await;
                sqlx::query(SELECT).bind(i).fetch_all(&mut *c).await?;
            }
        }
        "n_plus_one" => {
            for parent in sqlx::query("SELECT id FROM item WHERE id < $1").bind(20i32).fetch_all(&mut *c).await? {
                sqlx::query("SELECT payload FROM item WHERE parent = $1").bind(parent.get::<i32, _>(0))
                    .fetch_all(&mut *c).await?;
            }
        }
        "errors" => {
            for _ in 0..5 {
                if sqlx::query("SELECT 1 / ($1::int - 1)").bind(1i32).fetch_all(&mut *c).await.is_ok() {
                    return Err("no error".into());
                }
                sqlx::query("SELECT 1").fetch_all(&mut *c).await?;
            }
        }
        _ => return Err("no such case".into()),
    }
    Ok(())
}
