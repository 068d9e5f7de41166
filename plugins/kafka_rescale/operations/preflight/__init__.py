"""What must be asked of brokers and files before an expansion may begin?"""
