package org.kafkarescale;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.utils.Utils;

/**
 * Kafka Streams' own assignor, which is shown the inputs with the partitions that they are going to have.
 *
 * <p>Only {@link WarmUpGate} sets it. It is public, because the consumer makes it from the name of its class.
 */
public final class GrownAssignor implements ConsumerPartitionAssignor, Configurable {
    /** Class of the assignor that Kafka Streams has set. */
    static final String DELEGATE = "kafka.rescale.gate.assignor";
    /** Map of the inputs' names to how many partitions they are going to have. */
    static final String PARTITIONS = "kafka.rescale.gate.partitions";

    private ConsumerPartitionAssignor delegate;
    private Map<?, ?> wanted = Map.of();

    @Override
    public void configure(final Map<String, ?> config) {
        wanted = (Map<?, ?>) config.get(PARTITIONS);
        try {
            delegate = Utils.newInstance(config.get(DELEGATE).toString(), ConsumerPartitionAssignor.class);
        } catch (final ClassNotFoundException error) {
            throw new IllegalStateException(error);
        }
        if (delegate instanceof Configurable) {
            ((Configurable) delegate).configure(config);
        }
    }

    @Override
    public ByteBuffer subscriptionUserData(final Set<String> topics) {
        return delegate.subscriptionUserData(topics);
    }

    @Override
    public GroupAssignment assign(final Cluster metadata, final GroupSubscription subscriptions) {
        return delegate.assign(grown(metadata, wanted), subscriptions);
    }

    @Override
    public void onAssignment(final Assignment assignment, final ConsumerGroupMetadata metadata) {
        delegate.onAssignment(assignment, metadata);
    }

    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        return delegate.supportedProtocols();
    }

    @Override
    public short version() {
        return delegate.version();
    }

    @Override
    public String name() {
        return delegate.name();
    }

    /** Partitions that exist are never hidden. Those that are missing look like the topic's first partition. */
    private static Cluster grown(final Cluster real, final Map<?, ?> wanted) {
        final List<PartitionInfo> all = new ArrayList<>();
        for (final String topic : real.topics()) {
            final List<PartitionInfo> present = real.partitionsForTopic(topic);
            all.addAll(present);
            final int count = wanted.containsKey(topic) ? (Integer) wanted.get(topic) : 0;
            for (int partition = present.size(); partition < count && !present.isEmpty(); partition++) {
                final PartitionInfo like = present.get(0);
                all.add(
                    new PartitionInfo(topic, partition, like.leader(), like.replicas(), like.inSyncReplicas()));
            }
        }
        return new Cluster(real.clusterResource().clusterId(), real.nodes(), all, real.unauthorizedTopics(),
            real.internalTopics(), real.controller());
    }
}
