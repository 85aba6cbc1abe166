import static org.junit.jupiter.api.Assertions.assertEquals;

import java.sql.SQLException;
import java.util.HashSet;
import java.util.Set;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(Guard.class)
class OrdersTest {
    @BeforeAll
    static void fill() throws SQLException {
        try (var statement = Guard.connection.createStatement()) {
            statement.execute("CREATE TABLE IF NOT EXISTS customer AS SELECT id, 'customer ' || id AS name FROM generate_series(1, 20) id");
        }
    }

    @Test
    void namesAtOnce() throws SQLException {
        Set<String> names = new HashSet<>();
        try (var statement = Guard.connection.createStatement();
                var rows = statement.executeQuery("SELECT name FROM customer")) {
            while (rows.next())
                names.add(rows.getString(1));
        }
        assertEquals(20, names.size());
    }

    /** An N+1: the assertion holds, and the guard does not. */
    @Test
    @Tag("sick")
    void namesOneByOne() throws SQLException {
        Set<String> names = new HashSet<>();
        try (var statement = Guard.connection.createStatement();
                var one = Guard.connection.prepareStatement("SELECT name FROM customer WHERE id = ?");
                var rows = statement.executeQuery("SELECT id FROM customer")) {
            while (rows.next()) {
                one.setInt(1, rows.getInt(1));
                try (var row = one.executeQuery()) {
                    row.next();
                    names.add(row.getString(1));
                }
            }
        }
        assertEquals(20, names.size());
    }
}
