//! tokio-postgres.

use crate::{server, Outcome, INSERT, SELECT, THINK};
use bytes::Bytes;
use futures_util::{future::join_all, pin_mut, SinkExt, StreamExt, TryStreamExt};
use tokio_postgres::{Client, Config, NoTls};

pub const CASES: &[&str] = &[
    "query", "prepared", "query_typed", "simple_query", "pipelined", "pipelined_unprepared", "transaction",
    "portal", "copy_in", "copy_in_large", "copy_failed", "copy_out", "large_result", "large_parameter", "think",
    "n_plus_one", "errors", "short_connections",
];

pub async fn run(name: &str, role: &str) -> Outcome {
    if name == "short_connections" {
        for _ in 0..10 {
            session("simple_query_once", role).await?;
        }
        return Ok(());
    }
    session(name, role).await
}

/// One connection, which ends when its client is gone.
async fn session(name: &str, role: &str) -> Outcome {
    let (host, port) = server();
    let (client, connection) = Config::new()
        .host(&host).port(port).user(role).dbname("postgres").application_name(role)
        .connect(NoTls).await?;
    let task = tokio::spawn(connection);
    let result = work(name, client).await;
    task.await??;
    result
}

async fn work(name: &str, mut client: Client) -> Outcome {
    match name {
        "query" => {
            for i in 0..20i32 {
                client.query(SELECT, &[&i]).await?;
            }
        }
        "prepared" => {
            let statement = client.prepare(SELECT).await?;
            for i in 0..20i32 {
                client.query(&statement, &[&i]).await?;
            }
        }
        "query_typed" => {
            for i in 0..20i32 {
                client.query_typed(SELECT, &[(&i, tokio_postgres::types::Type::INT4)]).await?;
            }
        }
        "simple_query" => {
            for i in 0..20 {
                client.simple_query(&format!("SELECT payload FROM item WHERE id = {i}")).await?;
            }
        }
        "simple_query_once" => {
            client.simple_query("SELECT 1").await?;
        }
        "pipelined" => {
            let statement = client.prepare(SELECT).await?;
            let ids: Vec<i32> = (0..20).collect();
            for _ in 0..3 {
                for result in join_all(ids.iter().map(|i| client.query_one(&statement, std::slice::from_ref(i).iter().map(
                    |i| i as &(dyn tokio_postgres::types::ToSql + Sync)).collect::<Vec<_>>().leak()))).await {
                    result?;
                }
            }
        }
        "pipelined_unprepared" => {
            for result in join_all((0..10).map(|_| client.query("SELECT count(*) FROM item", &[]))).await {
                result?;
            }
        }
        "transaction" => {
            for _ in 0..3 {
                let transaction = client.transaction().await?;
                let statement = transaction.prepare(INSERT).await?;
                for i in 0..5i32 {
                    transaction.execute(&statement, &[&i, &"x"]).await?;
                }
                transaction.commit().await?;
            }
        }
        "portal" => {
            let transaction = client.transaction().await?;
            let portal = transaction.bind("SELECT * FROM item", &[]).await?;
            while transaction.query_portal(&portal, 100).await?.len() == 100 {}
            transaction.commit().await?;
        }
        "copy_in" => {
            for _ in 0..10 {
                let sink = client.copy_in::<_, Bytes>("COPY sink FROM STDIN").await?;
                pin_mut!(sink);
                sink.send(Bytes::from_static(b"1\tx\n2\tx\n")).await?;
                sink.finish().await?;
            }
        }
        "copy_in_large" => {
            let sink = client.copy_in::<_, Bytes>("COPY sink FROM STDIN").await?;
            pin_mut!(sink);
            for _ in 0..30 {
                sink.send(Bytes::from(format!("1\t{}\n", "x".repeat(100)).repeat(1000))).await?;
            }
            sink.finish().await?;
        }
        "copy_failed" => {
            for _ in 0..5 {
                let sink = client.copy_in::<_, Bytes>("COPY sink FROM STDIN").await?;
                pin_mut!(sink);
                sink.send(Bytes::from_static(b"not a number\tx\n")).await?;
                if sink.finish().await.is_ok() {
                    return Err("no error".into());
                }
                client.simple_query("SELECT 1").await?;
            }
        }
        "copy_out" => {
            for _ in 0..3 {
                let stream = client.copy_out("COPY item TO STDOUT").await?;
                pin_mut!(stream);
                while stream.next().await.is_some() {}
            }
        }
        "large_result" => {
            for _ in 0..3 {
                let rows = client.query_raw("SELECT repeat('x', 1000) FROM generate_series(1, 2000)",
                                            Vec::<String>::new()).await?;
                pin_mut!(rows);
                while rows.try_next().await?.is_some() {}
            }
        }
        "large_parameter" => {
            let statement = client.prepare("SELECT length($1)").await?;
            for _ in 0..3 {
                client.query(&statement, &[&"x".repeat(1_000_000)]).await?;
            }
        }
        "think" => {
            let statement = client.prepare(SELECT).await?;
            for i in 0..10i32 {
                tokio::time::sleep(THINK).await;
                client.query(&statement, &[&i]).await?;
            }
        }
        "n_plus_one" => {
            for parent in client.query("SELECT id FROM item WHERE id < $1", &[&20i32]).await? {
                client.query("SELECT payload FROM item WHERE parent = $1", &[&parent.get::<_, i32>(0)]).await?;
            }
        }
        "errors" => {
            for _ in 0..5 {
                if client.query("SELECT 1 / ($1::int - 1)", &[&1i32]).await.is_ok() {
                    return Err("no error".into());
                }
                client.query("SELECT 1", &[]).await?;
            }
        }
        _ => return Err("no such case".into()),
    }
    Ok(())
}
