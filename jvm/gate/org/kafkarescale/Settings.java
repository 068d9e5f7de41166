package org.kafkarescale;

import java.util.Map;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.KafkaClientSupplier;
import org.apache.kafka.streams.StreamsConfig;

/** Reads settings of the application as Kafka Streams reads them. */
final class Settings {
    private Settings() {}

    /**
     * Returns a setting without the white space around it.
     *
     * <p>A file of properties keeps white space at the end of a value. Kafka Streams drops it
     * ({@code ConfigDef.parseType}). A gate that kept it would look into another group, or another directory.
     *
     * @param config that of the application
     * @param name of the setting
     * @return null if the application does not set it
     */
    static String text(final Map<String, ?> config, final String name) {
        final Object value = config.get(name);
        return value == null ? null : value.toString().trim();
    }

    /**
     * Returns the application's id.
     *
     * @param config that of the application
     * @return the id, which is also the name of the application's group
     * @throws IllegalStateException there is none
     */
    static String applicationId(final Map<String, ?> config) {
        final String id = text(config, StreamsConfig.APPLICATION_ID_CONFIG);
        if (id == null) {
            throw new IllegalStateException("found no application.id; expected the configuration that KafkaStreams "
                + "gets. Call configure(...) of the gate with that");
        }
        return id;
    }

    /**
     * Makes the client supplier whose class a setting names, and configures it as Kafka Streams does.
     *
     * @param config that of the application
     * @param setting name of the setting; without it, the supplier is that of Kafka Streams
     * @param caller the gate that hands out the clients of this supplier, and so can't be it
     * @return the supplier
     * @throws IllegalStateException there is no such class, or it is no other client supplier
     */
    static KafkaClientSupplier supplier(final Map<String, ?> config, final String setting, final Class<?> caller) {
        final Class<?> type = supplierClass(config, setting);
        // If a gate wrapped itself, it would make gates without end.
        if (type == caller || !KafkaClientSupplier.class.isAssignableFrom(type)) {
            throw new IllegalStateException(setting + ": found " + type.getName() + "; expected a class that "
                + "implements KafkaClientSupplier, and not the gate itself. Name the supplier that the application "
                + "would have without the gate, or remove the setting");
        }
        final KafkaClientSupplier made = (KafkaClientSupplier) Utils.newInstance(type);
        if (made instanceof Configurable) {
            ((Configurable) made).configure(config);
        }
        return made;
    }

    private static Class<?> supplierClass(final Map<String, ?> config, final String setting) {
        final Object named = config.get(setting);
        final Object name = named != null
            ? named
            : StreamsConfig.configDef().defaultValues().get(StreamsConfig.DEFAULT_CLIENT_SUPPLIER_CONFIG);
        if (name instanceof Class) {
            return (Class<?>) name;
        }
        try {
            return Utils.loadClass(name.toString().trim(), Object.class);
        } catch (final ClassNotFoundException error) {
            throw new IllegalStateException(setting + ": found no class " + name + " on the class path; expected "
                + "that of the supplier that the application would have without the gate. Correct the name, or remove "
                + "the setting", error);
        }
    }
}
