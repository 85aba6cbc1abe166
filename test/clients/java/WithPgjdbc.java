import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.StringReader;
import java.io.StringWriter;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import org.postgresql.PGConnection;

/**
 * Workloads of pgjdbc.
 *
 * --list: the names of the cases; CASE...: run them, each as a role of its own.
 */
public class WithPgjdbc {
    private static final String SELECT = "SELECT payload FROM item WHERE id = ?";
    private static final String INSERT = "INSERT INTO sink VALUES (?, ?)";
    private static final int THINK = 30;

    interface Work {
        void run(Connection c) throws Exception;
    }

    interface Case {
        void run(String role) throws Exception;
    }

    private static final Map<String, Case> CASES = new LinkedHashMap<>();

    private static String url() {
        return "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/postgres";
    }

    private static Properties properties(String role, String... more) {
        Properties p = new Properties();
        p.setProperty("user", role);
        p.setProperty("ApplicationName", role);
        p.setProperty("sslmode", System.getenv().getOrDefault("PGSSLMODE", "disable"));
        p.setProperty("password", System.getenv().getOrDefault("PGPASSWORD", ""));
        for (int i = 0; i < more.length; i += 2) {
            p.setProperty(more[i], more[i + 1]);
        }
        return p;
    }

    /** A case with one connection, and properties of it. */
    private static void with(String name, Work work, String... more) {
        CASES.put(name, role -> {
            try (Connection c = DriverManager.getConnection(url(), properties(role, more))) {
                work.run(c);
            }
        });
    }

    private static void select(Connection c, int count, int pause) throws Exception {
        try (PreparedStatement s = c.prepareStatement(SELECT)) {
            for (int i = 0; i < count; i++) {
                Thread.sleep(pause);
                s.setInt(1, i);
                read(s.executeQuery());
            }
        }
    }

    private static int read(ResultSet rows) throws SQLException {
        int count = 0;
        try (rows) {
            while (rows.next()) {
                count++;
            }
        }
        return count;
    }

    private static void insertBatches(Connection c) throws Exception {
        for (int batch = 0; batch < 5; batch++) {
            try (PreparedStatement s = c.prepareStatement(INSERT)) {
                for (int i = 0; i < 20; i++) {
                    s.setInt(1, i);
                    s.setString(2, "x");
                    s.addBatch();
                }
                s.executeBatch();
            }
        }
    }

    private static void insertRows(Connection c) throws Exception {
        for (int i = 0; i < 5; i++) {
            try (PreparedStatement s = c.prepareStatement(INSERT)) {
                s.setInt(1, i);
                s.setString(2, "x");
                s.executeUpdate();
            }
        }
    }

    private static void readAll(Connection c, int fetchSize, int maxRows) throws Exception {
        try (Statement s = c.createStatement()) {
            s.setFetchSize(fetchSize);
            s.setMaxRows(maxRows);
            read(s.executeQuery("SELECT * FROM item"));
        }
    }

    static {
        with("prepared", c -> select(c, 20, 0));
        with("never_named", c -> select(c, 20, 0), "prepareThreshold", "0");
        with("always_named", c -> select(c, 20, 0), "prepareThreshold", "1");
        with("simple_protocol", c -> select(c, 20, 0), "preferQueryMode", "simple");
        with("prepared_each_time", c -> {
            for (int i = 0; i < 20; i++) {
                select(c, 1, 0);
            }
        });
        with("application_name_at_start", c -> select(c, 5, 0), "assumeMinServerVersion", "12");
        with("statement", c -> {
            try (Statement s = c.createStatement()) {
                for (int i = 0; i < 20; i++) {
                    read(s.executeQuery("SELECT payload FROM item WHERE id = " + i));
                }
            }
        });
        with("several_in_one", c -> {
            try (Statement s = c.createStatement()) {
                for (int i = 0; i < 5; i++) {
                    s.execute("SELECT 1; SELECT 2; SELECT 3");
                }
            }
        });
        with("transaction", c -> {
            c.setAutoCommit(false);
            for (int i = 0; i < 3; i++) {
                insertRows(c);
                c.commit();
            }
        });
        with("rolled_back", c -> {
            c.setAutoCommit(false);
            for (int i = 0; i < 3; i++) {
                insertRows(c);
                c.rollback();
            }
        });
        with("batch", c -> {
            c.setAutoCommit(false);
            insertBatches(c);
            c.commit();
        });
        with("batch_autocommit", c -> insertBatches(c));
        with("batch_rewritten", c -> {
            c.setAutoCommit(false);
            insertBatches(c);
            c.commit();
        }, "reWriteBatchedInserts", "true");
        with("batch_returning_keys", c -> {
            try (PreparedStatement s = c.prepareStatement(INSERT, Statement.RETURN_GENERATED_KEYS)) {
                for (int i = 0; i < 10; i++) {
                    s.setInt(1, i);
                    s.setString(2, "x");
                    s.addBatch();
                }
                s.executeBatch();
            }
        });
        with("fetch_size", c -> {
            c.setAutoCommit(false);
            readAll(c, 100, 0);
            c.commit();
        });
        with("fetch_size_closed_early", c -> {
            c.setAutoCommit(false);
            for (int i = 0; i < 3; i++) {
                try (Statement s = c.createStatement()) {
                    s.setFetchSize(10);
                    s.executeQuery("SELECT * FROM item").next();
                }
            }
            c.commit();
        });
        with("max_rows", c -> {
            for (int i = 0; i < 10; i++) {
                readAll(c, 0, 10);
            }
        });
        with("n_plus_one_max_rows", c -> {
            try (PreparedStatement s = c.prepareStatement("SELECT payload FROM item WHERE parent = ?")) {
                s.setMaxRows(1);
                for (int i = 0; i < 20; i++) {
                    s.setInt(1, i);
                    read(s.executeQuery());
                }
            }
        });
        with("copy_in", c -> {
            for (int i = 0; i < 10; i++) {
                c.unwrap(PGConnection.class).getCopyAPI().copyIn("COPY sink FROM STDIN", new StringReader("1\tx\n2\tx\n"));
            }
        });
        with("copy_in_large", c -> c.unwrap(PGConnection.class).getCopyAPI().copyIn("COPY sink FROM STDIN",
                new StringReader(("1\t" + "x".repeat(100) + "\n").repeat(30000))));
        with("copy_failed", c -> {
            for (int i = 0; i < 5; i++) {
                try {
                    c.unwrap(PGConnection.class).getCopyAPI().copyIn("COPY sink FROM STDIN",
                            new StringReader("not a number\tx\n" + ("1\t" + "x".repeat(200) + "\n").repeat(1000)));
                    throw new Exception("no error");
                } catch (SQLException expected) {
                    readAll(c, 0, 0);
                }
            }
        });
        with("copy_out", c -> {
            for (int i = 0; i < 3; i++) {
                c.unwrap(PGConnection.class).getCopyAPI().copyOut("COPY item TO STDOUT", new StringWriter());
            }
        });
        with("large_result", c -> {
            try (Statement s = c.createStatement()) {
                for (int i = 0; i < 3; i++) {
                    read(s.executeQuery("SELECT repeat('x', 1000) FROM generate_series(1, 2000)"));
                }
            }
        });
        with("large_parameter", c -> {
            try (PreparedStatement s = c.prepareStatement("SELECT length(?)")) {
                for (int i = 0; i < 3; i++) {
                    s.setString(1, "x".repeat(1_000_000));
                    read(s.executeQuery());
                }
            }
        });
        with("think", c -> select(c, 10, THINK));
        with("errors", c -> {
            for (int i = 0; i < 5; i++) {
                try (PreparedStatement s = c.prepareStatement("SELECT 1 / (?::int - 1)")) {
                    s.setInt(1, 1);
                    s.executeQuery();
                    throw new Exception("no error");
                } catch (SQLException expected) {
                    readAll(c, 0, 1);
                }
            }
        });
        with("savepoints_always", c -> {
            c.setAutoCommit(false);
            insertRows(c);
            c.commit();
        }, "autosave", "always");
        CASES.put("hikari", role -> {
            HikariConfig config = new HikariConfig();
            config.setJdbcUrl(url());
            config.setDataSourceProperties(properties(role));
            config.setMaximumPoolSize(1);
            try (HikariDataSource pool = new HikariDataSource(config)) {
                for (int i = 0; i < 10; i++) {
                    try (Connection c = pool.getConnection()) {
                        select(c, 1, 0);
                    }
                }
            }
        });
        CASES.put("short_connections", role -> {
            for (int i = 0; i < 10; i++) {
                try (Connection c = DriverManager.getConnection(url(), properties(role))) {
                    readAll(c, 0, 1);
                }
            }
        });
    }

    public static void main(String[] names) {
        if (names[0].equals("--list")) {
            System.out.println(String.join("\n", CASES.keySet()));
            return;
        }
        for (String name : names) {
            try {
                CASES.get(name).run(System.getenv("DRIVER") + "_" + name);
                System.out.println("done " + name);
            } catch (Exception error) {
                System.out.println("error " + name + ": " + error);
            }
        }
    }
}
