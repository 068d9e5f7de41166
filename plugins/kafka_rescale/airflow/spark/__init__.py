"""How is a Spark job submitted, with which connection to Kafka?"""
