import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;

import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Each test has an application_name of its own; after the last one of a class, the guard looks at all of them. */
class Guard implements BeforeEachCallback, AfterAllCallback {
    static final Connection connection = connect();

    static Connection connect() {
        try {
            return DriverManager.getConnection(System.getenv("DATABASE_URL"));
        } catch (SQLException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    @Override
    public void beforeEach(ExtensionContext test) throws SQLException {
        String name = test.getRequiredTestClass().getSimpleName() + "." + test.getRequiredTestMethod().getName();
        connection.setClientInfo("ApplicationName", name.substring(0, Math.min(name.length(), 63)));
    }

    @Override
    public void afterAll(ExtensionContext tests) throws SQLException {
        connection.setClientInfo("ApplicationName", "guard");
        try (var check = connection.prepareStatement(
                "SELECT pgnetlat_guard_check(repeats => 10, round_trips => 30, names => ?)")) {
            check.setString(1, tests.getRequiredTestClass().getSimpleName() + ".%");
            check.executeQuery();
        }
    }
}
